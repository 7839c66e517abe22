// Runs come from the notebook's kernel, one at a time: of requests that wait, only the newest is sent.
export default {
  render({ model, el }) {
    const waiting = new Map();
    let count = 0, before = Promise.resolve();
    model.on("msg:custom", ({ id, frame }) => { waiting.get(id)?.(frame); waiting.delete(id); });
    const send = (id, settings) => new Promise((done) => { waiting.set(id, done); model.send({ id, settings }); });
    el.classList.add("firstlight");
    firstlightLive.mount(el, model.get("knobs"), (settings) => {
      const id = ++count, answer = before.then(() => id === count ? send(id, settings) : { error: "" });
      before = answer;
      return answer;
    });
  },
};
