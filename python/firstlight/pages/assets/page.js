// A report's figures become charts when they come near the screen; search, colours, keys.
"use strict";
(() => {
  const scopeOf = (figure) => figure.closest("section")?.id ?? "page";
  async function draw(figure) {
    const data = await firstlightChart.unpack(figure.querySelector("script").textContent);
    data.name = figure.id;
    const place = document.createElement("div");
    place.className = "chart";
    figure.querySelector("figcaption").before(place);
    figure.classList.add("live");
    firstlightChart.mount(data, place, scopeOf(figure));
  }
  const come = new IntersectionObserver((seen) => {
    for (const { target } of seen.filter((one) => one.isIntersecting)) {
      come.unobserve(target);
      draw(target);
    }
  }, { rootMargin: "800px" });
  document.querySelectorAll("figure:has(> script)").forEach((figure) => come.observe(figure));

  const theme = document.getElementById("theme");
  const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches
    ? "dark" : "light")) === "dark";
  const named = () => { theme.textContent = dark() ? "Light" : "Dark"; };
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    named();
    firstlightChart.repaint();
  });
  named();

  const search = document.getElementById("search");
  const found = document.getElementById("found");
  if (search) {
    const parts = [...document.querySelectorAll("[data-claim]")];
    const texts = new Map(parts.filter((p) => p.tagName === "SECTION").map((p) => [p.dataset.claim,
      [...p.querySelectorAll("h3, p, figcaption, td")].map((e) => e.textContent).join(" ").toLowerCase()]));
    search.addEventListener("input", () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const fits = new Set([...texts].filter(([, text]) => words.every((w) => text.includes(w))).map(([name]) => name));
      for (const part of parts) part.hidden = !fits.has(part.dataset.claim);
      for (const group of document.querySelectorAll("[data-group]")) {
        group.hidden = !group.querySelector("[data-claim]:not([hidden])");
      }
      found.textContent = words.length ? `${fits.size} of ${texts.size} claims` : "";
    });
  }
  addEventListener("keydown", (event) => {
    if (event.target.matches("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) {
      if (event.key === "Escape" && event.target === search) {
        search.value = "";
        search.dispatchEvent(new Event("input"));
        search.blur();
      }
      return;
    }
    const sections = [...document.querySelectorAll("section[id]:not([hidden])")];
    const here = sections.findLastIndex((s) => s.getBoundingClientRect().top < 80);
    if (event.key === "/" && search) search.focus();
    else if (event.key === "n") sections[here + 1]?.scrollIntoView();
    else if (event.key === "p") sections[Math.max(here - 1, 0)]?.scrollIntoView();
    else if (event.key === "s") (document.getElementById("scoreboard") ?? document.body).scrollIntoView();
    else if (event.key === "t") theme.click();
    else return;
    event.preventDefault();
  });
})();
