// Draws the curves of a figure (JSON of firstlight.figures.panels) with uPlot: zoom by dragging, values under the
// pointer, a legend that switches curves on and off, time axes that zoom together.
"use strict";
const firstlightChart = (() => {
  const MARK = { o: [0, 0], s: [4, Math.PI / 4], D: [4, 0], "^": [3, -Math.PI / 2], v: [3, Math.PI / 2],
    "<": [3, Math.PI], ">": [3, 0] };  // corners and the angle of the first; no corners: a circle
  const MOST_VALUES = 14;
  const linked = new Map();  // charts whose horizontal axes zoom together, by key
  const charts = new Set();

  // A colour of the page; in a notebook of the widget's own element.
  const css = (name) => getComputedStyle(document.querySelector(".firstlight") ?? document.documentElement)
    .getPropertyValue(name).trim();
  const ink = (color) => color || css("--ink");
  const make = (tag, parent, attributes = {}, text = "") => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    parent?.append(element);
    return element;
  };
  // A number as a person writes it, with five digits.
  const number = (v) => v === 0 ? "0" : String(Math.abs(v) >= 1e6 || Math.abs(v) < 1e-4 ? v.toPrecision(4)
    : Number(v.toPrecision(5)));
  const nameAt = (axis, at) => axis.names.find(([place]) => Math.abs(place - at) < 0.5)?.[1] ?? number(at);

  // What base64 of a zlib stream holds.
  function inflated(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")));
  }

  // The numbers of a figure: 32-bit floats, the first bytes of all, then the second ones, the third, the fourth.
  async function floats(text) {
    const bytes = new Uint8Array(await inflated(text).arrayBuffer()), count = bytes.length / 4;
    return new Float32Array(bytes.map((_, i) => bytes[(i % 4) * count + (i >> 2)]).buffer);
  }

  // A figure of a page: its JSON, packed.
  const unpack = async (text) => read(await inflated(text).json());

  // Reads a figure's JSON: its curves get their numbers.
  async function read(figure) {
    const all = await floats(figure.numbers);
    for (const curve of figure.panels.flatMap((panel) => panel.curves)) {
      for (const key of ["x", "y", "low", "high", "base"]) {
        if (curve[key]) curve[key] = all.subarray(curve[key][0], curve[key][0] + curve[key][1]);
      }
    }
    return figure;
  }

  // Draws one curve on the canvas of a uPlot.
  function paint(u, curve) {
    const g = u.ctx, px = devicePixelRatio, { x, y } = curve;
    const X = (v) => u.valToPos(v, "x", true), Y = (v) => u.valToPos(v, "y", true);
    const box = u.bbox;
    g.globalAlpha = curve.alpha ?? 1;
    g.strokeStyle = g.fillStyle = ink(curve.color);
    g.lineWidth = (curve.width ?? 1) * px;
    if (curve.bar) {
      paintBars(u, curve, X, Y);
      return;
    }
    if (x.length === 0 || y.length === 0) {  // a level
      g.setLineDash(curve.dash.map((d) => d * g.lineWidth));
      g.beginPath();
      if (y.length) { g.moveTo(box.left, Y(y[0])); g.lineTo(box.left + box.width, Y(y[0])); }
      else { g.moveTo(X(x[0]), box.top); g.lineTo(X(x[0]), box.top + box.height); }
      g.stroke();
      return;
    }
    if (curve.dash) {
      g.setLineDash(curve.dash.map((d) => d * g.lineWidth));
      g.lineJoin = "round";
      g.beginPath();
      for (let i = 0, before; i < x.length; i++) {
        const a = X(x[i]), b = Y(y[i]);
        if (i && curve.step) g.lineTo(a, before);
        g[i ? "lineTo" : "moveTo"](a, b);
        before = b;
      }
      g.stroke();
    }
    g.setLineDash([]);
    g.lineWidth = px;
    if (curve.low) {
      g.beginPath();
      for (let i = 0; i < x.length; i++) {
        if (curve.along === "y") { g.moveTo(X(x[i]), Y(curve.low[i])); g.lineTo(X(x[i]), Y(curve.high[i])); }
        else { g.moveTo(X(curve.low[i]), Y(y[i])); g.lineTo(X(curve.high[i]), Y(y[i])); }
      }
      g.stroke();
    }
    if (curve.marker) {
      const [corners, first] = MARK[curve.marker], r = curve.size * px * 0.62;
      g.strokeStyle = ink(curve.edge);
      g.lineWidth = 1.3 * px;
      g.beginPath();
      for (let i = 0; i < x.length; i++) {
        const a = X(x[i]), b = Y(y[i]);
        if (!corners) { g.moveTo(a + r, b); g.arc(a, b, r, 0, 2 * Math.PI); continue; }
        for (let k = 0; k <= corners; k++) {
          const turn = first + (2 * Math.PI * k) / corners;
          g[k ? "lineTo" : "moveTo"](a + 1.2 * r * Math.cos(turn), b + 1.2 * r * Math.sin(turn));
        }
      }
      if (curve.filled) g.fill();
      g.stroke();
    }
  }

  function paintBars(u, curve, X, Y) {
    const g = u.ctx, { x, y, bar, thick, base } = curve;
    g.lineWidth = devicePixelRatio;
    const { left, top, width, height } = u.bbox;
    const foot = bar === "y" ? Math.min(top + height, Y(u.scales.y.distr === 3 ? u.scales.y.min : 0))
      : Math.max(left, X(u.scales.x.distr === 3 ? u.scales.x.min : 0));
    g.beginPath();
    for (let i = 0; i < x.length; i++) {
      if (bar === "y") {
        const a = X(x[i] - thick / 2), b = Y(y[i]);
        g.rect(a, b, X(x[i] + thick / 2) - a, (base ? Y(base[i]) : foot) - b);
      } else {
        const a = base ? X(base[i]) : foot, b = Y(y[i] - thick / 2);
        g.rect(a, b, X(x[i]) - a, Y(y[i] + thick / 2) - b);
      }
    }
    curve.filled ? g.fill() : g.stroke();
  }

  function shade(u, spans) {
    const g = u.ctx, { left, top, width, height } = u.bbox;
    g.save();
    for (const span of spans) {
      const from = u.valToPos(span.from, span.axis, true), to = u.valToPos(span.to, span.axis, true);
      g.globalAlpha = span.alpha;
      g.fillStyle = ink(span.color);
      g.beginPath();
      g.rect(left, top, width, height);
      g.save();
      g.clip();
      if (span.axis === "x") g.fillRect(from, top, Math.max(to - from, 1), height);
      else g.fillRect(left, to, width, Math.max(from - to, 1));
      g.restore();
    }
    g.restore();
  }

  // The point of a curve nearest to the pointer: along x, or in both directions where y has names.
  function nearest(u, curve, left, top, both) {
    let best = -1, least = Infinity;
    for (let i = 0; i < curve.x.length; i++) {
      const dx = u.valToPos(curve.x[i], "x") - left;
      if (curve.step && dx > 0 && !both) { if (best < 0 && dx < 6) best = i; break; }
      const d = both ? Math.hypot(dx, u.valToPos(curve.y[i], "y") - top) : Math.abs(dx);
      if (d <= least) { least = d; best = i; }
    }
    return best;
  }

  function readout(u, panel, hidden, box) {
    const { left, top } = u.cursor;
    if (left === undefined || left < 0) { box.hidden = true; return; }
    const both = panel.y.names.length > 0;
    const rows = [];
    let at = u.posToVal(left, "x");
    for (const curve of panel.curves) {
      if (hidden.has(curve.label) || !curve.x.length || !curve.y.length) continue;
      const i = nearest(u, curve, left, top, both);
      if (i < 0) continue;
      const dx = Math.abs(u.valToPos(curve.x[i], "x") - left);
      const dy = u.valToPos(curve.y[i], "y") - top;
      if (both ? Math.abs(dy) > 16 : !curve.step && !curve.bar && curve.marker && dx > 24) continue;
      if (curve.bar === "y" && dx > 40) continue;
      if (!curve.step && !both) at = curve.x[i];
      const value = number((both ? curve.x : curve.y)[i] - (curve.base ? curve.base[i] : 0));
      const reach = curve.low ? ` (${number(curve.low[i])} to ${number(curve.high[i])})` : "";
      const name = curve.label || (both ? nameAt(panel.y, curve.y[i]) : "");
      rows.push({ far: Math.abs(dy), color: ink(curve.color), text: `${name ? name + ": " : ""}${value}${reach}` });
    }
    box.hidden = rows.length === 0;
    const head = both ? panel.x.what : `${panel.x.what ? panel.x.what + ": " : ""}${nameAt(panel.x, at)}`;
    const near = [...rows].sort((a, b) => a.far - b.far).slice(0, MOST_VALUES);
    box.replaceChildren(make("b", null, {}, head));
    for (const row of rows.filter((r) => near.includes(r))) {
      const line = make("div", box);
      make("i", line, { style: `background:${row.color}` });
      line.append(row.text);
    }
    const flip = left > u.over.clientWidth / 2;
    box.style.left = flip ? "" : `${left + 14}px`;
    box.style.right = flip ? `${u.over.clientWidth - left + 14}px` : "";
    box.style.top = `${Math.max(0, Math.min(top, u.over.clientHeight - box.offsetHeight))}px`;
  }

  const scaleOf = (axis) => ({ time: false, auto: false, distr: axis.log ? 3 : 1, log: 10,
    min: Math.min(axis.from, axis.to), max: Math.max(axis.from, axis.to), dir: axis.from > axis.to ? -1 : 1 });

  const longest = (names) => Math.max(...names.flatMap(([, text]) => text.split("\n")).map((line) => line.length));

  function axisOf(axis, side, narrow) {
    const named = axis.names.length > 0;
    return {
      side: side, label: axis.label, labelSize: axis.label ? 20 : 0, labelFont: "12px system-ui, sans-serif",
      font: "11px system-ui, sans-serif", stroke: () => css("--ink"),
      grid: { show: !(named && side === 3), stroke: () => css("--line"), width: 1 },
      ticks: { stroke: () => css("--line"), size: 4 },
      size: side === 2 ? 26 : named
        ? Math.min(narrow ? 150 : 240, 14 + 6.3 * longest(axis.names))
        : (u, texts) => Math.max(48, 14 + 6.3 * Math.max(0, ...(texts ?? []).map((text) => (text ?? "").length))),
      ...(named ? {
        splits: () => axis.names.map(([at]) => at),
        values: (u, at) => at.map((v) => axis.names.find(([place]) => place === v)?.[1] ?? ""),
        filter: (u, at) => at,
        ...(side === 2 && axis.names.some(([, text]) => text.length > 6) ? { rotate: -30, size: 62 } : {}),
      } : axis.log ? { values: (u, at) => at.map((v) => v === null ? null
        : Number.isInteger(Math.log10(v)) || Math.log10(u.scales[side === 3 ? "y" : "x"].max
          / u.scales[side === 3 ? "y" : "x"].min) < 1.2 ? number(v) : "") }
        : { values: (u, at) => at.map((v) => v === null ? null : number(v)) }),
    };
  }

  function zoom(u, factor) {
    const { min, max } = u.scales.x;
    const log = u.scales.x.distr === 3, f = log ? Math.log : (v) => v, b = log ? Math.exp : (v) => v;
    const middle = u.cursor.left >= 0 ? f(u.posToVal(u.cursor.left, "x")) : (f(min) + f(max)) / 2;
    u.setScale("x", { min: b(middle - (middle - f(min)) * factor), max: b(middle + (f(max) - middle) * factor) });
  }

  function keys(u, reset) {
    return (event) => {
      const step = u.over.clientWidth / 100 * (event.shiftKey ? 10 : 1);
      const left = u.cursor.left >= 0 ? u.cursor.left : u.over.clientWidth / 2;
      const top = u.cursor.top >= 0 ? u.cursor.top : u.over.clientHeight / 2;
      const height = u.over.clientHeight / 100 * (event.shiftKey ? 10 : 2);
      const to = { ArrowLeft: [left - step, top], ArrowRight: [left + step, top], ArrowUp: [left, top - height],
        ArrowDown: [left, top + height] }[event.key];
      if (to) u.setCursor({ left: Math.max(0, Math.min(to[0], u.over.clientWidth)),
        top: Math.max(0, Math.min(to[1], u.over.clientHeight)) });
      else if (event.key === "+" || event.key === "=") zoom(u, 0.5);
      else if (event.key === "-") zoom(u, 2);
      else if (event.key === "0" || event.key === "Escape") reset();
      else return;
      event.preventDefault();
    };
  }

  function chart(panel, place, size, hidden, key) {
    const narrow = size.width < 420;
    const siblings = linked.get(key) ?? linked.set(key, new Set()).get(key);
    const self = {};
    let box, quiet = false;
    const limits = (u) => { for (const s of ["x", "y"]) u.setScale(s, { min: scaleOf(panel[s]).min,
      max: scaleOf(panel[s]).max }); };
    const reset = () => u.batch(() => limits(u));
    const visible = () => panel.curves.filter((c) => !hidden.has(c.label) || !c.label);
    const options = {
      ...size, title: panel.title || undefined, legend: { show: false }, padding: [8, 12, 0, 0],
      scales: { x: scaleOf(panel.x), y: scaleOf(panel.y) },
      axes: [axisOf(panel.x, 2, narrow), axisOf(panel.y, 3, narrow)],
      series: [{}, { show: true, paths: () => null, points: { show: false } }],
      cursor: { drag: { x: true, y: true, uni: 24, setScale: true }, points: { show: false },
        bind: { dblclick: () => reset } },
      hooks: {
        drawClear: [(u) => shade(u, panel.spans.filter((s) => !hidden.has(s.label) || !s.label))],
        draw: [(u) => {
          const { left, top, width, height } = u.bbox, g = u.ctx;
          g.save();
          g.beginPath();
          g.rect(left - 3, top - 3, width + 6, height + 6);
          g.clip();
          for (const curve of visible()) { g.save(); paint(u, curve); g.restore(); }
          if (self.marked !== undefined) {
            const at = u.valToPos(self.marked, "x", true);
            g.fillStyle = css("--ink");
            g.fillRect(at, top, devicePixelRatio, height);
          }
          if (panel.note) {
            g.fillStyle = css("--soft");
            g.textAlign = "center";
            g.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
            g.fillText(panel.note, left + width / 2, top + height / 2);
          }
          g.restore();
        }],
        setCursor: [(u) => box && readout(u, panel, hidden, box)],
        setScale: [(u, name) => {
          if (name !== "x" || quiet) return;
          const { min, max } = u.scales.x;
          for (const other of siblings) if (other.u !== u) other.follow(min, max);
        }],
      },
    };
    const span = [scaleOf(panel.x).min, scaleOf(panel.x).max];
    const u = new uPlot(options, [span, [panel.y.from, panel.y.to]], place);
    limits(u);
    box = make("div", u.over, { class: "readout" });
    box.hidden = true;
    Object.assign(self, { u, panel, follow(min, max) { quiet = true; u.setScale("x", { min, max }); quiet = false; } });
    siblings.add(self);
    charts.add(self);
    u.root.tabIndex = 0;
    u.root.setAttribute("role", "group");
    u.root.setAttribute("aria-label", `Chart ${panel.title}: ${panel.y.what || "values"} against `
      + `${panel.x.what || "x"}. Arrow keys read values, + and - zoom, 0 shows everything.`);
    u.root.addEventListener("keydown", keys(u, reset));
    u.root.addEventListener("blur", () => { u.setCursor({ left: -10, top: -10 }); });
    return { u, self, reset, drop() { siblings.delete(self); charts.delete(self); u.destroy(); } };
  }

  // A sample of a curve for the legend.
  function swatch(curve) {
    const color = curve.color || "currentColor";
    const dash = curve.dash?.length ? ` stroke-dasharray="${curve.dash.map((d) => 2 * d).join(" ")}"` : "";
    const line = curve.dash ? `<path d="M1 6H21" stroke="${color}" stroke-width="2"${dash}/>` : "";
    const fill = curve.filled ? color : "none", edge = curve.edge || "currentColor";
    const mark = curve.bar || curve.axis ? `<rect x="4" y="1.5" width="14" height="9" stroke="${color}" fill="${
      curve.axis || curve.filled ? color : "none"}" fill-opacity="${curve.alpha ?? 1}"/>`
      : curve.marker === "s" ? `<rect x="7.5" y="2.5" width="7" height="7" fill="${fill}" stroke="${edge}"/>`
      : curve.marker === "o" ? `<circle cx="11" cy="6" r="3.5" fill="${fill}" stroke="${edge}"/>`
      : curve.marker ? `<path d="${{ "^": "M11 2L15 9.5H7Z", v: "M11 10L15 2.5H7Z", "<": "M7 6L14 2V10Z",
        ">": "M15 6L8 2V10Z", D: "M11 2L15 6L11 10L7 6Z" }[curve.marker]}" fill="${fill}" stroke="${edge}"/>` : "";
    return `<svg width="22" height="12" aria-hidden="true">${line}${mark}</svg>`;
  }

  function legend(figure, place, hidden, redraw) {
    const found = new Map();
    for (const panel of figure.panels) {
      for (const one of [...panel.curves, ...panel.spans]) {
        if (one.label && !found.has(one.label)) found.set(one.label, one);
      }
    }
    const bar = make("div", place, { class: "legend", role: "group", "aria-label": "Curves shown" });
    if (figure.legend) make("span", bar, {}, `${figure.legend}:`);
    for (const [label, one] of found) {
      const button = make("button", bar, { type: "button", "aria-pressed": "true", title: `Hide or show ${label}` });
      button.innerHTML = swatch(one);
      button.append(label);
      button.addEventListener("click", () => {
        hidden.has(label) ? hidden.delete(label) : hidden.add(label);
        button.setAttribute("aria-pressed", String(!hidden.has(label)));
        redraw();
      });
    }
    return bar;
  }

  // Draws a figure whose numbers were read into `place`. Time axes of one `scope` (any text) of the same quantity
  // and span zoom together.
  function mount(figure, place, scope) {
    const hidden = new Set();
    let drawn = [];
    const redraw = () => drawn.forEach((one) => one.u.redraw());
    const bar = legend(figure, place, hidden, redraw);
    const all = make("button", bar, { type: "button", class: "reset", title: "Show everything (0)" }, "Reset zoom");
    all.addEventListener("click", () => drawn.forEach((one) => one.reset()));
    const grid = make("div", place, { class: "panels" });
    const layout = () => {
      const width = grid.clientWidth;
      if (!width) return;
      drawn.forEach((one) => one.drop());
      const columns = Math.max(1, Math.min(figure.columns, Math.floor(width / 230)));
      grid.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
      const each = Math.floor(width / columns);
      drawn = figure.panels.map((panel) => {
        const height = Math.max(150, Math.round(figure.heights[panel.row] * figure.ratio * Math.min(width, 864)));
        const cell = make("div", grid);
        const span = [panel.x.from, panel.x.to].map((v) => v.toPrecision(2));
        const time = /^Time\b/.test(panel.x.what);
        const key = time ? `${scope} ${panel.x.what} ${span}` : `${figure.name} ${panel.group}`;
        return chart(panel, cell, { width: each - 4, height }, hidden, key);
      });
    };
    let width = 0;
    const sized = new ResizeObserver(() => {
      if (Math.abs(grid.clientWidth - width) < 2) return;
      width = grid.clientWidth;
      grid.replaceChildren();
      layout();
    });
    sized.observe(grid);
    width = grid.clientWidth;
    layout();
    return {
      // A line at a time in all panels that have a time axis.
      mark(time) {
        for (const one of drawn) {
          if (!/^Time\b/.test(one.self.panel.x.what)) continue;
          one.self.marked = time;
          one.u.redraw(false, false);
        }
      },
      remove() { sized.disconnect(); drawn.forEach((one) => one.drop()); drawn = []; },
    };
  }

  const repaint = () => charts.forEach((one) => one.u.redraw(true, true));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  return { floats, unpack, mount, repaint, number, charts };
})();
