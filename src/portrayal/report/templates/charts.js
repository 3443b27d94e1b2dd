"use strict";
// Charts are drawn from data that stand in the page, when they come near the part that is seen, and all for print.
(() => {
  const root = document.documentElement;
  const places = [...document.querySelectorAll(".plot")];
  const drawn = new Map(); // place -> what ends its drawing, and the width and colours it was drawn with
  const waiting = new Set();
  let ready = null;
  let known = null; // the drawings, once the library is there
  let busy = false;

  async function unpacked(name) {
    const bytes = Uint8Array.from(atob(document.getElementById(name).textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  // The library is a module that puts its functions on the window.
  async function prepare() {
    const [text, data] = await Promise.all([unpacked("charts-library"), unpacked("charts")]);
    const script = document.createElement("script");
    const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    const loaded = new Promise((resolve, reject) => { script.onload = resolve; script.onerror = reject; });
    script.type = "module";
    script.src = address;
    document.head.append(script);
    await loaded;
    URL.revokeObjectURL(address);
    known = JSON.parse(data);
    root.dataset.library = "yes";
  }
  const prepared = () => (ready ??= prepare());

  function isDark() {
    const chosen = root.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  // Only colours change: names and numbers are never looked at.
  const PAINTS = new Set(["color", "fill", "stroke", "range", "gridColor", "labelColor", "titleColor"]);
  function painted(value, colours, key) {
    if (typeof value === "string") return PAINTS.has(key) && Object.hasOwn(colours, value) ? colours[value] : value;
    if (Array.isArray(value)) return value.map((one) => painted(one, colours, key));
    if (!value || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) =>
      [name, name === "data" || name === "domain" ? inner : painted(inner, colours, name)]));
  }

  function dressed(spec, place, dark) {
    const made = painted(spec, dark ? known.dark : {}, "");
    const style = getComputedStyle(root);
    const [ink, soft, line] = ["--ink", "--soft", "--line"].map((name) => style.getPropertyValue(name).trim());
    const config = made.config || {};
    made.config = {
      ...config, background: "transparent", aria: false,
      axis: { ...config.axis, labelColor: ink, titleColor: soft, gridColor: line, domainColor: soft, tickColor: soft },
      legend: { ...config.legend, labelColor: ink, titleColor: soft },
      title: { ...config.title, color: ink },
      text: { ...config.text, fill: ink },
      view: { ...config.view, stroke: line },
    };
    if (made.autosize && made.autosize.type === "fit-x") made.width = Math.floor(place.clientWidth);
    return made;
  }

  const OPTIONS = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false, tooltip: { disableDefaultStyle: true } };
  async function draw(place) {
    const dark = isDark();
    const width = place.clientWidth;
    const before = drawn.get(place);
    if (before && before.dark === dark && before.width === width) return;
    if (before) before.finalize();
    const made = { dark, width, finalize: () => {} };
    drawn.set(place, made);
    const picture = document.createElement("div");
    picture.setAttribute("aria-hidden", "true"); // the place has words of its own
    const result = await window.vegaEmbed(picture, dressed(known.specs[Number(place.dataset.chart)], place, dark), OPTIONS);
    made.finalize = () => result.finalize();
    place.replaceChildren(picture);
    place.style.minHeight = "";
  }

  const pause = () => new Promise((resolve) => setTimeout(resolve));
  async function work() {
    if (busy) return;
    busy = true;
    try { await prepared(); } catch (error) { // the page says so
      console.warn(error);
      for (const place of places) place.style.minHeight = "";
      return;
    }
    while (waiting.size) {
      const [place] = waiting;
      waiting.delete(place);
      try { await draw(place); } catch (error) { console.error(error); }
      await pause(); // the reader's scrolling comes first
    }
    busy = false;
    root.dataset.charts = "yes";
  }
  function want(some) {
    for (const place of some) waiting.add(place);
    if (waiting.size) { delete root.dataset.charts; work(); } else if (!busy) root.dataset.charts = "yes";
  }

  const near = new Set();
  const watching = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) if (isIntersecting) near.add(target); else near.delete(target);
    want([...near].filter((place) => !drawn.has(place) || stale(place)));
  }, { rootMargin: "600px 0px" });
  function stale(place) {
    const before = drawn.get(place);
    return before.dark !== isDark() || before.width !== place.clientWidth;
  }
  const again = () => want([...near].filter((place) => drawn.has(place) && stale(place)));

  for (const place of places) {
    place.style.minHeight = `${Number(place.dataset.height)}px`; // so that nothing moves when it is drawn
    watching.observe(place);
  }
  new MutationObserver(again).observe(root, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  let later = 0;
  addEventListener("resize", () => { clearTimeout(later); later = setTimeout(again, 200); });
  // Printing does not wait, so that the library is there before anybody asks for it.
  addEventListener("load", () => setTimeout(() => prepared().catch(() => {}), 1000));
  // Paper is light, whatever the screen is.
  let before;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    if (known) for (const place of places) draw(place);
  });
  addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before; else delete root.dataset.theme;
  });
})();
