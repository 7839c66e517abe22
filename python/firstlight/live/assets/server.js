// Runs come from the server of `firstlight live`.
"use strict";
firstlightLive.mount(document.getElementById("live"), JSON.parse(document.getElementById("knobs").textContent),
  async (settings) => {
    const answer = await fetch("run", { method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify(settings) });
    const type = answer.headers.get("content-type") ?? "";
    return type.startsWith("application/json") ? answer.json() : { error: await answer.text() };
  });
