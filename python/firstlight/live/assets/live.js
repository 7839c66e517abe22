// An experiment that runs again at each change of its settings: the fabric over time, curves, sliders, two pinned runs.
"use strict";
const firstlightLive = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const CALM = "#56b4e9", FULL = "#d55e00", PAUSED = "#cc79a7";
  const WAIT_MS = 60;  // after the last movement of a slider
  const make = (tag, parent, attributes = {}, text = "") => {
    const svg = ["svg", "line", "circle", "rect", "text", "path", "g", "title"].includes(tag);
    const element = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text) element.textContent = text;
    parent?.append(element);
    return element;
  };
  const button = (parent, text, does, title = "") => {
    const one = make("button", parent, { type: "button", title: title || text }, text);
    one.addEventListener("click", does);
    return one;
  };

  async function unpack(frame) {
    const all = await firstlightChart.floats(frame.numbers);
    const at = (place) => all.subarray(place[0], place[0] + place[1]);
    for (const panel of frame.figure.panels) {
      for (const curve of panel.curves) { curve.x = at(curve.x); curve.y = at(curve.y); }
    }
    for (const queue of Object.values(frame.queues)) { queue.at = at(queue.at); queue.held = at(queue.held); }
    return frame;
  }

  // The last value at or before a time.
  function before(times, values, time) {
    let low = 0, high = times.length;
    while (low < high) { const middle = (low + high) >> 1; times[middle] <= time ? low = middle + 1 : high = middle; }
    return low ? values[low - 1] : 0;
  }

  // What a rack or a switch is drawn in.
  const box = (svg, x, y) => make("rect", svg, { x: x - 27, y: y - 12, width: 54, height: 24, rx: 4,
    fill: "var(--page)", stroke: "var(--ink)" });

  // Racks in a circle and the circuits between them; each rack's VOQs as bars above it, in the order of their racks.
  function hybrid(frame, svg) {
    const n = frame.fabric.racks, W = 640, H = 316, R = 112;
    svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
    const place = (i) => { const turn = (2 * Math.PI * i) / n - Math.PI / 2;
      return [W / 2 + 1.5 * R * Math.cos(turn), H / 2 + 10 + R * Math.sin(turn)]; };
    const lines = make("g", svg);
    for (let i = 0; i < n; i++) {
      const [x, y] = place(i);
      box(svg, x, y);
      make("text", svg, { x, y: y + 4, "text-anchor": "middle" }, `rack ${i}`);
    }
    const label = make("text", svg, { x: 12, y: H - 8 }), longest = make("text", svg, { x: 12, y: 20 });
    const most = Math.max(1, ...Object.values(frame.queues).map((queue) => Math.max(...queue.held)));
    const HIGH = 34, wide = Math.max(1.5, Math.min(7, 54 / n));
    const bars = Object.entries(frame.queues).map(([name, queue]) => {
      const [, a, b, mice] = name.match(/^voq\.(\d+)\.(\d+)(\.mice)?$/), [x, y] = place(Number(a));
      const bar = make("rect", svg, { x: x - wide * n / 2 + wide * (Number(b) + (mice ? 0.5 : 0)), y: y - 12, height: 0,
        width: wide * (mice ? 0.4 : 0.8), fill: CALM, "data-voq": name });
      return [bar, queue, `${a}-${b}`, y - 12, `VOQ ${a} to ${b}${mice ? " (mice)" : ""}`, make("title", bar)];
    });
    return (time) => {
      lines.replaceChildren();
      const { days, week_us: week } = frame.circuits, at = week ? time % week : time;
      const up = days.filter(([from, to]) => from <= at && at < to);
      for (const [, , a, b] of up) {
        const [x1, y1] = place(a), [x2, y2] = place(b);
        const mine = frame.pair && a === frame.pair[0] && b === frame.pair[1];
        const mx = (x1 + x2) / 2 + (y2 - y1) * 0.12, my = (y1 + y2) / 2 - (x2 - x1) * 0.12;
        make("path", lines, { d: `M${x1} ${y1}Q${mx} ${my} ${x2} ${y2}`, fill: "none", "stroke-width": mine ? 5 : 2,
          stroke: mine ? FULL : CALM, class: "circuit", "data-pair": `${a}-${b}` });
        const t = 0.7, px = (1 - t) ** 2 * x1 + 2 * t * (1 - t) * mx + t * t * x2,
          py = (1 - t) ** 2 * y1 + 2 * t * (1 - t) * my + t * t * y2;
        make("circle", lines, { cx: px, cy: py, r: mine ? 6 : 4, fill: mine ? FULL : CALM });
      }
      const some = up.slice(0, 8).map(([, , a, b]) => `${a} to ${b}`).join(", ");
      const more = up.length > 8 ? ` and ${up.length - 8} more` : "";
      label.textContent = up.length ? `day: circuits ${some}${more}` : "night";
      const open = new Set(up.map(([, , a, b]) => `${a}-${b}`));
      let top = 0, where = "";
      for (const [bar, queue, pair, foot, name, title] of bars) {
        const packets = before(queue.at, queue.held, time), height = HIGH * packets / most;
        bar.setAttribute("y", foot - height);
        bar.setAttribute("height", height);
        bar.setAttribute("fill", open.has(pair) ? FULL : CALM);
        title.textContent = `${name}: ${packets} packets`;
        if (packets > top) [top, where] = [packets, name];
      }
      longest.textContent = where ? `longest ${where}: ${top} packets` : "no VOQ holds a packet";
    };
  }

  // Switches in tiers above their hosts; a link is as thick and red as its queue is long, violet while it is paused.
  function graph(frame, svg) {
    const links = frame.fabric.links, near = new Map();
    const join = (a, b) => near.set(a, (near.get(a) ?? new Set()).add(b));
    for (const [a, b] of links) { join(a, b); join(b, a); }
    const isHost = (name) => /^host\d+$/.test(name);
    const tier = new Map([...near.keys()].filter(isHost).map((name) => [name, 0]));
    let edge = [...tier.keys()];
    while (edge.length) {
      const next = [];
      for (const a of edge) {
        for (const b of near.get(a)) if (!tier.has(b)) { tier.set(b, tier.get(a) + 1); next.push(b); }
      }
      edge = next;
    }
    for (const name of near.keys()) if (!tier.has(name)) tier.set(name, 1);
    const tiers = Math.max(...tier.values()), W = 640, H = 90 + 80 * tiers, places = new Map();
    svg.setAttribute("viewBox", `0 0 ${W} ${H}`);
    const order = [...near.keys()].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
    for (let t = tiers; t >= 1; t--) {
      const some = order.filter((name) => tier.get(name) === t);
      some.forEach((name, i) => places.set(name, [(W * (i + 0.5)) / some.length, 34 + 80 * (tiers - t)]));
    }
    const sorted = order.filter((name) => tier.get(name) === 1).flatMap((s) => order.filter((h) => isHost(h)
      && near.get(h).has(s)));
    sorted.forEach((name, i) => places.set(name, [(W * (i + 0.5)) / sorted.length, H - 22]));
    const most = Math.max(1, ...Object.values(frame.queues).map((q) => Math.max(...q.held)));
    const drawn = [];
    for (const [a, b, port] of links) {
      const [x1, y1] = places.get(a), [x2, y2] = places.get(b);
      const both = links.some(([c, d]) => c === b && d === a), s = both ? 3 : 0;
      const length = Math.hypot(x2 - x1, y2 - y1) || 1, dx = s * (y2 - y1) / length, dy = -s * (x2 - x1) / length;
      const line = make("line", svg, { x1: x1 + dx, y1: y1 + dy, x2: x2 + dx, y2: y2 + dy, "data-port": port });
      make("title", line, {}, port);
      drawn.push([line, port, b]);
    }
    for (const [name, [x, y]] of places) {
      if (isHost(name)) {
        const dot = make("circle", svg, { cx: x, cy: y, r: 4, fill: "var(--ink)", "data-host": name });
        make("title", dot, {}, name);
        if (sorted.length <= 24) make("text", svg, { x, y: y + 17, "text-anchor": "middle" }, name.replace("host", ""));
      } else {
        box(svg, x, y);
        make("text", svg, { x, y: y + 4, "text-anchor": "middle" }, name);
      }
    }
    const longest = make("text", svg, { x: 10, y: 16 });
    return (time) => {
      const paused = new Set();
      for (const [at, name, begins] of frame.pauses) {
        if (at > time) break;
        begins ? paused.add(name) : paused.delete(name);
      }
      let top = 0, where = "";
      for (const [line, port, to] of drawn) {
        const queue = frame.queues[port], bytes = queue ? before(queue.at, queue.held, time) : 0;
        if (bytes > top) { top = bytes; where = port; }
        const held = paused.has(port), part = Math.sqrt(bytes / most);
        line.setAttribute("stroke", held ? PAUSED : bytes ? part > 0.5 ? FULL : CALM : "var(--line)");
        line.setAttribute("stroke-width", held ? 4 : 1.2 + 7 * part);
        line.setAttribute("data-state", held ? "paused" : bytes ? "queue" : "idle");
      }
      for (const dot of svg.querySelectorAll("[data-host]")) {
        const held = paused.has(`${dot.dataset.host}.nic`);
        dot.setAttribute("fill", held ? PAUSED : "var(--ink)");
        dot.setAttribute("r", held ? 6 : 4);
      }
      longest.textContent = `${where ? `longest queue ${where}: ${(top / 1e3).toFixed(1)} kB` : "no queue"}${
        frame.pauses.length ? `; ${paused.size} ports paused` : ""}`;
    };
  }

  // The curves of a run, with those of other runs behind them.
  function overlaid(frame, others) {
    const figure = { ...frame.figure, name: "live", panels: frame.figure.panels.map((panel) => ({ ...panel,
      x: { ...panel.x }, y: { ...panel.y }, curves: [...panel.curves] })) };
    for (const [name, other, look] of others) {
      for (const panel of figure.panels) {
        const twin = other.figure.panels.find((p) => p.y.what === panel.y.what);
        if (!twin) continue;
        const main = twin.curves.slice(0, twin.y.what.startsWith("Thr") || twin.curves.length === 1 ? 1 : 3);
        main.forEach((curve, i) => panel.curves.unshift({ ...curve, ...look,
          label: i ? `${name}, ${curve.label}` : name }));
        panel.x.to = Math.max(panel.x.to, twin.x.to);
        panel.y.to = Math.max(panel.y.to, twin.y.to);
      }
    }
    return figure;
  }

  // When a watched queue was longest: there a page begins.
  function busiest(frame) {
    let begin = 0, most = 0;
    for (const { at, held } of Object.values(frame.queues)) {
      held.forEach((size, i) => { if (size > most) [most, begin] = [size, at[i]]; });
    }
    return begin;
  }

  // `run(settings)` promises a frame; one with an `error` is shown as such.
  function mount(place, knobs, run) {
    const root = make("div", place, { class: "fl-live" });
    const side = make("div", root), main = make("div", root);
    const settings = {};
    let frame, ghost, pins = {}, time = 0, playing = false, draw = () => {}, chart, asked = 0;

    const svg = make("svg", main, { class: "fabric", role: "img", "aria-label": "The fabric at the chosen time" });
    const meaning = make("div", main, { class: "soft" });
    const bar = make("div", main, { class: "row" });
    const play = button(bar, "Play", () => { playing = !playing; play.textContent = playing ? "Stop" : "Play";
      if (playing) { if (time >= frame.end_us) time = 0; requestAnimationFrame(tick); } });
    button(bar, "‹", () => step(-1), "One day, or one hundredth of the run, back");
    button(bar, "›", () => step(1), "One day, or one hundredth of the run, on");
    const slide = make("input", bar, { type: "range", min: 0, max: 1000, value: 0, "aria-label": "Time" });
    const clock = make("span", bar, { class: "time" });
    slide.addEventListener("input", () => show(frame.end_us * slide.value / 1000));
    const charts = make("div", main, { class: "chart" });
    const fault = make("p", side, { class: "fault", role: "alert" });
    const list = make("div", side);
    const acts = make("div", side, { class: "row" });
    const told = make("div", side, { class: "soft", "aria-live": "polite" });
    const table = make("div", main, { class: "scroll" });

    const copy = async (text, one) => {
      try { await navigator.clipboard.writeText(text); one.textContent = "Copied"; }
      catch { make("textarea", acts, { rows: 6 }).value = text; }
      setTimeout(() => { one.textContent = one.dataset.name; }, 1200);
    };
    for (const [name, what] of [["Copy as TOML", "toml"], ["Copy as --set", "command"]]) {
      const one = button(acts, name, () => frame && copy(frame[what], one));
      one.dataset.name = name;
      one.dataset.copy = what;
    }
    for (const name of ["A", "B"]) {
      const one = button(acts, `Pin ${name}`, () => {
        pins[name] = pins[name] ? undefined : { ...frame };
        one.textContent = pins[name] ? `Unpin ${name}` : `Pin ${name}`;
        paint();
      }, "Keep this run to compare with");
    }
    const back = button(acts, "File's settings", () => {
      for (const key of Object.keys(settings)) delete settings[key];
      for (const one of list.children) one.restore();
      ask();
    });
    back.title = "Undo all changes";

    function knobOf(knob) {
      const one = make("div", list, { class: "knob", title: knob.help, "data-key": knob.key });
      const label = make("label", one);
      make("span", label, {}, knob.key);
      const give = (value) => {
        const same = String(value) === String(knob.value);
        one.classList.toggle("changed", !same);
        if (same) delete settings[knob.key];
        else settings[knob.key] = knob.choices.length ? knob.choices.includes("true") ? value === "true" : value
          : knob.unit ? `${value}${knob.unit}` : Number(value);
        ask();
      };
      if (knob.choices.length) {
        const choice = make("select", label);
        for (const word of knob.choices) make("option", choice, {}, word);
        choice.value = knob.value;
        choice.addEventListener("change", () => give(choice.value));
        one.restore = () => { choice.value = knob.value; one.classList.remove("changed"); };
        return;
      }
      const right = make("span", label), box = make("input", right, { type: "text", inputmode: "decimal",
        "aria-label": knob.key });
      right.append(` ${knob.unit}`);
      const range = make("input", one, { type: "range", min: 0, max: 200, "aria-label": `${knob.key}, slider` });
      const geometric = knob.low > 0;
      const fromPart = (part) => {
        const v = geometric ? knob.low * (knob.high / knob.low) ** part : knob.low + (knob.high - knob.low) * part;
        return knob.whole ? Math.round(v) : Number(v.toPrecision(3));
      };
      const toPart = (v) => geometric ? Math.log(Math.max(v, knob.low) / knob.low) / Math.log(knob.high / knob.low)
        : (v - knob.low) / (knob.high - knob.low);
      one.restore = () => {
        box.value = knob.value;
        range.value = 200 * toPart(knob.value);
        one.classList.remove("changed");
      };
      one.restore();
      range.addEventListener("input", () => { box.value = fromPart(range.value / 200); give(box.value); });
      box.addEventListener("change", () => { range.value = 200 * toPart(Number(box.value)); give(box.value); });
    }

    // To the next or the previous beginning or end of a day; without circuits by a hundredth of the run.
    function step(direction) {
      const { days, week_us: week } = frame.circuits, first = week ? Math.floor(time / week) * week : 0;
      const edges = [...new Set(days.flatMap(([from, to]) => [from, to]))];
      const all = !days.length ? Array.from({ length: 101 }, (_, i) => frame.end_us * i / 100)
        : (week ? [-week, 0, week] : [0]).flatMap((w) => edges.map((t) => first + w + t)).sort((a, b) => a - b);
      const next = direction > 0 ? all.find((t) => t > time + 1e-6) : all.findLast((t) => t < time - 1e-6);
      show(next ?? (direction > 0 ? frame.end_us : 0));
    }
    let last;
    function tick(now) {
      if (!playing) { last = undefined; return; }
      if (last !== undefined) show(time + (now - last) * frame.end_us / 12000);  // the whole run in 12 s
      last = now;
      if (time >= frame.end_us) { playing = false; play.textContent = "Play"; last = undefined; return; }
      requestAnimationFrame(tick);
    }
    function show(at) {
      time = Math.max(0, Math.min(at, frame.end_us));
      slide.value = 1000 * time / frame.end_us;
      clock.textContent = `${(time / 1e3).toFixed(3)} ms`;
      draw(time);
      chart?.mark(time / 1e3);
    }

    function paint() {
      if (!frame) return;
      const looks = { A: { color: "#009e73", dash: [5, 2] }, B: { color: "#cc79a7", dash: [2, 2] } };
      const others = Object.entries(looks).map(([name, look]) => [name, pins[name], look])
        .filter(([, one]) => one).map(([name, one, look]) => [name, one, { ...look, width: 1.4 }]);
      if (!others.length && ghost) others.push(["before", ghost, { alpha: 0.35, color: "", dash: [] }]);
      chart?.remove();
      charts.replaceChildren();
      chart = firstlightChart.mount(overlaid(frame, others), charts, "live");
      svg.replaceChildren();
      draw = (frame.fabric.kind === "hybrid" ? hybrid : graph)(frame, svg);
      meaning.textContent = frame.fabric.kind === "hybrid"
        ? "Lines: circuits, orange: of the measured pair. Bars: VOQs of the rack below, orange: with a circuit."
        : "Width of a link: bytes that wait for it. Violet: paused.";
      show(time > frame.end_us ? 0 : time);
      told.replaceChildren();
      const length = (frame.end_us / 1e3).toPrecision(4);
      make("p", told, {}, `${length} ms simulated in ${frame.took_ms} ms, digest ${frame.digest}.`);
      if (frame.note) make("p", told, { class: "note" }, frame.note);
      for (const warning of frame.warnings) make("p", told, {}, `Warning: ${warning}`);
      summary();
    }
    function summary() {
      const columns = [["now", frame], ...["A", "B"].filter((n) => pins[n]).map((n) => [n, pins[n]])];
      if (columns.length === 1 && ghost) columns.push(["before", ghost]);
      table.replaceChildren();
      const details = make("details", table);
      details.open = !!(pins.A || pins.B);
      make("summary", details, {}, "Summary");
      const rows = make("table", details), head = make("tr", rows);
      make("th", head, {}, "metric");
      for (const [name] of columns) make("th", head, {}, name);
      make("th", head, {}, "unit");
      for (const [metric, unit] of frame.summary) {
        const row = make("tr", rows, { "data-metric": metric });
        make("td", row, {}, metric);
        for (const [, one] of columns) {
          const value = one.summary.find(([name]) => name === metric)?.[2];
          make("td", row, { class: "n" }, value === null || value === undefined ? "-" : firstlightChart.number(value));
        }
        make("td", row, {}, unit);
      }
    }

    let timer;
    function ask() { clearTimeout(timer); timer = setTimeout(request, WAIT_MS); }
    async function request() {
      const mine = ++asked;
      root.dataset.state = "running";
      let answer;
      try { answer = await run({ ...settings }); }
      catch (problem) { answer = { error: `no answer: ${problem.message}; is firstlight live still running?` }; }
      if (mine !== asked) return;
      root.dataset.state = answer.error ? "fault" : "shown";
      fault.textContent = answer.error ?? "";
      if (answer.error) return;
      const next = await unpack(answer);
      if (mine !== asked) return;
      if (!frame) time = busiest(next);
      ghost = frame;
      frame = next;
      paint();
      root.dataset.runs = String(Number(root.dataset.runs ?? 0) + 1);
    }
    knobs.forEach(knobOf);
    if (!knobs.length) make("p", list, {}, "This experiment has no numeric keys to change.");
    request();
    return root;
  }
  return { mount };
})();
