"use strict";
// Draws the charts from data in the page: each when it comes near the visible part, and all of them for print.
(() => {
  const root = document.documentElement;
  const plots = [...document.querySelectorAll(".plot")];
  const drawings = new Map(); // plot -> finalize(), and the width and theme that it was drawn with
  const queue = new Set();
  let preparation = null;
  let charts = null; // the specifications and dark colors, once the library is loaded
  let isDrawing = false;

  async function unpack(name) {
    const bytes = Uint8Array.from(atob(document.getElementById(name).textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  // The library is a module that adds its functions to the window.
  async function prepare() {
    const [text, data] = await Promise.all([unpack("charts-library"), unpack("charts")]);
    const script = document.createElement("script");
    const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    const loaded = new Promise((resolve, reject) => { script.onload = resolve; script.onerror = reject; });
    script.type = "module";
    script.src = address;
    document.head.append(script);
    await loaded;
    URL.revokeObjectURL(address);
    charts = JSON.parse(data);
    root.dataset.library = "yes";
  }
  const prepareOnce = () => (preparation ??= prepare());

  function isDark() {
    const chosen = root.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  // Replaces colors only, never names and numbers.
  const COLOR_KEYS = new Set(["color", "fill", "stroke", "range", "gridColor", "labelColor", "titleColor"]);
  function recolored(value, colors, key) {
    if (typeof value === "string") return COLOR_KEYS.has(key) && Object.hasOwn(colors, value) ? colors[value] : value;
    if (Array.isArray(value)) return value.map((item) => recolored(item, colors, key));
    if (!value || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) =>
      [name, name === "data" || name === "domain" ? inner : recolored(inner, colors, name)]));
  }

  function themed(spec, plot, dark) {
    const copy = recolored(spec, dark ? charts.dark : {}, "");
    const style = getComputedStyle(root);
    const [ink, soft, line] = ["--ink", "--soft", "--line"].map((name) => style.getPropertyValue(name).trim());
    const config = copy.config || {};
    copy.config = {
      ...config, background: "transparent", aria: false,
      axis: { ...config.axis, labelColor: ink, titleColor: soft, gridColor: line, domainColor: soft, tickColor: soft },
      legend: { ...config.legend, labelColor: ink, titleColor: soft },
      title: { ...config.title, color: ink },
      text: { ...config.text, fill: ink },
      view: { ...config.view, stroke: line },
    };
    if (copy.autosize && copy.autosize.type === "fit-x") copy.width = Math.floor(plot.clientWidth);
    return copy;
  }

  const OPTIONS = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false, tooltip: { disableDefaultStyle: true } };
  async function draw(plot) {
    const dark = isDark();
    const width = plot.clientWidth;
    const previous = drawings.get(plot);
    if (previous && previous.dark === dark && previous.width === width) return;
    if (previous) previous.finalize();
    const drawing = { dark, width, finalize: () => {} };
    drawings.set(plot, drawing);
    const container = document.createElement("div");
    container.setAttribute("aria-hidden", "true"); // the plot has a label of its own
    const result = await window.vegaEmbed(container, themed(charts.specs[Number(plot.dataset.chart)], plot, dark), OPTIONS);
    drawing.finalize = () => result.finalize();
    plot.replaceChildren(container);
    plot.style.minHeight = "";
  }

  const pause = () => new Promise((resolve) => setTimeout(resolve));
  async function drawQueue() {
    if (isDrawing) return;
    isDrawing = true;
    try { await prepareOnce(); } catch (error) { // the tables hold the numbers
      console.warn(error);
      for (const plot of plots) plot.style.minHeight = "";
      return;
    }
    while (queue.size) {
      const [plot] = queue;
      queue.delete(plot);
      try { await draw(plot); } catch (error) { console.error(error); }
      await pause(); // lets scrolling go on between charts
    }
    isDrawing = false;
    root.dataset.charts = "yes";
  }
  function enqueue(requested) {
    for (const plot of requested) queue.add(plot);
    if (queue.size) { delete root.dataset.charts; drawQueue(); } else if (!isDrawing) root.dataset.charts = "yes";
  }

  const near = new Set(); // plots near the visible part
  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) if (isIntersecting) near.add(target); else near.delete(target);
    enqueue([...near].filter((plot) => !drawings.has(plot) || isStale(plot)));
  }, { rootMargin: "600px 0px" });
  function isStale(plot) {
    const previous = drawings.get(plot);
    return previous.dark !== isDark() || previous.width !== plot.clientWidth;
  }
  const redrawStale = () => enqueue([...near].filter((plot) => drawings.has(plot) && isStale(plot)));

  for (const plot of plots) {
    plot.style.minHeight = `${Number(plot.dataset.height)}px`; // so that the page does not move when it is drawn
    observer.observe(plot);
  }
  new MutationObserver(redrawStale).observe(root, { attributes: true, attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawStale);
  let resizeTimer = 0;
  addEventListener("resize", () => { clearTimeout(resizeTimer); resizeTimer = setTimeout(redrawStale, 200); });
  // Printing does not wait, so the library is loaded before.
  addEventListener("load", () => setTimeout(() => prepareOnce().catch(() => {}), 1000));
  // Prints in the light theme.
  let themeBefore;
  addEventListener("beforeprint", () => {
    themeBefore = root.dataset.theme;
    root.dataset.theme = "light";
    if (charts) for (const plot of plots) draw(plot);
  });
  addEventListener("afterprint", () => {
    if (themeBefore) root.dataset.theme = themeBefore; else delete root.dataset.theme;
  });
})();
