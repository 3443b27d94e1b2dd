"use strict";
// Captions are shown through textContent only, so that nothing in them is parsed as markup.
const thumbnails = JSON.parse(document.getElementById("thumbnails").textContent);
const dialog = document.getElementById("evidence");

function element(tag, text, className) {
  const created = document.createElement(tag);
  created.textContent = text;
  if (className) created.className = className;
  return created;
}

function captionLine(caption, words) {
  const line = element("p", "", "caption");
  const escaped = [...words].sort((a, b) => b.length - a.length)
    .map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/ /g, "\\s+"));
  const pattern = escaped.length ? new RegExp(`(?<![\\p{L}\\p{N}-])(${escaped.join("|")})(?![\\p{L}\\p{N}-])`, "giu") : /($^)/;
  caption.split(pattern).forEach((piece, index) => line.append(index % 2 ? element("mark", piece) : piece));
  return line;
}

// The caption as the classifier sees it: warm words speak for the labelled group, cold words for another one.
function contributionLine(contributions) {
  const line = element("p", "", "parts");
  const most = Math.max(0.5, ...contributions.map(([, value]) => Math.abs(Number(value) || 0)));
  for (const [word, value] of contributions) {
    const piece = element("span", String(word));
    const strength = Math.min(1, Math.abs(Number(value) || 0) / most);
    piece.style.backgroundColor = `rgb(${value > 0 ? "217 119 6" : "14 116 144"} / ${(0.45 * strength).toFixed(2)})`;
    piece.title = Number(value).toFixed(2);
    line.append(piece, " ");
  }
  return line;
}

function thumbnailOf(image) {
  if (!Object.hasOwn(thumbnails, image)) return [];
  const img = document.createElement("img");
  img.src = "data:image/webp;base64," + thumbnails[image];
  img.alt = "";
  return [img];
}

// Each thumbnail is in the page once: counterfactual examples use those of the evidence.
for (const image of document.querySelectorAll("img[data-image]")) image.src = thumbnailOf(image.dataset.image)[0].src;

// One image: each source's caption as the classifier sees it, with the predicted group and its probability.
function sideBySide({ image, captions }) {
  const item = element("div", "", "side-by-side");
  item.tabIndex = 0; // it scrolls sideways on a narrow page, which must work with keys too
  item.setAttribute("role", "group");
  item.setAttribute("aria-label", `image ${image}`);
  item.append(...thumbnailOf(image), element("h3", `image ${image}, labelled ${captions[0].labelled}`));
  const table = element("table", "");
  for (const caption of captions) {
    const row = table.insertRow();
    row.append(element("th", caption.source));
    row.insertCell().append(contributionLine(caption.parts));
    const prediction = `${caption.predicted} ${Math.round(100 * Number(caption.confidence))} %`;
    row.append(element("td", prediction, caption.predicted === caption.labelled ? "right n" : "wrong n"));
    row.append(element("td", Number(caption.total).toFixed(2), "n"));
  }
  const head = table.createTHead().insertRow();
  for (const name of ["source", "caption as the classifier sees it", "prediction", "total"]) head.append(element("th", name, name === "prediction" || name === "total" ? "n" : ""));
  item.append(table);
  return item;
}

// Large data are compressed in the page, so that nothing is fetched.
async function unpack(name) {
  const bytes = Uint8Array.from(atob(document.getElementById(name).textContent), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

async function load() {
  evidence = decoded(JSON.parse(await unpack("data")));
  for (const { system, about, images } of JSON.parse(await unpack("compared"))) {
    const details = document.createElement("details");
    details.append(element("summary", `${system} (${about})`), ...images.map(sideBySide));
    document.getElementById("side-by-side-list").append(details);
  }
  document.querySelector("#side-by-side-list details")?.setAttribute("open", "");
  document.documentElement.dataset.loaded = "yes";
}
const loading = load().then(() => true, (error) => {
  document.getElementById("old").hidden = false;
  document.getElementById("save").hidden = true;
  console.warn(error);
  return false;
});

// results.json. Its measurements are stored by column, unless that would round a number.
async function results() {
  const text = await unpack("results"), data = JSON.parse(text);
  if (Array.isArray(data.measurements)) return text;
  const columns = Object.entries(data.measurements);
  data.measurements = columns[0][1].map((_, n) => Object.fromEntries(columns.map(([name, values]) => [name, values[n]])));
  return JSON.stringify(data, null, 1);
}

const save = document.getElementById("save");
save.hidden = false;
save.addEventListener("click", async () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([await results()], { type: "application/json" }));
  link.download = "results.json";
  link.click();
  URL.revokeObjectURL(link.href);
});

// The system's light or dark theme, until the reader chooses another.
const theme = document.getElementById("theme");
function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
function labelTheme() {
  theme.textContent = isDark() ? "light" : "dark";
  theme.setAttribute("aria-label", isDark() ? "Show the page light" : "Show the page dark");
}
theme.hidden = false;
theme.removeAttribute("aria-pressed");
labelTheme();
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  labelTheme();
});

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-id]");
  if (button) open(button);
  if (event.target === dialog) dialog.close();
});
