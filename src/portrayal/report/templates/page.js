"use strict";
// Captions are shown through textContent only, so that nothing in them is ever read as markup.
const pictures = JSON.parse(document.getElementById("pictures").textContent);
const dialog = document.getElementById("evidence");

function element(tag, text, className) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function marked(caption, words) {
  const line = element("p", "", "caption");
  const escaped = [...words].sort((a, b) => b.length - a.length)
    .map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/ /g, "\\s+"));
  const pattern = escaped.length ? new RegExp(`(?<![\\p{L}\\p{N}-])(${escaped.join("|")})(?![\\p{L}\\p{N}-])`, "giu") : /($^)/;
  caption.split(pattern).forEach((piece, index) => line.append(index % 2 ? element("mark", piece) : piece));
  return line;
}

// The caption as a classifier reads it: what gives the true group away is warm, what points elsewhere is cold.
function coloured(parts) {
  const line = element("p", "", "parts");
  const most = Math.max(0.5, ...parts.map(([, part]) => Math.abs(Number(part) || 0)));
  for (const [word, part] of parts) {
    const piece = element("span", String(word));
    const strength = Math.min(1, Math.abs(Number(part) || 0) / most);
    piece.style.backgroundColor = `rgb(${part > 0 ? "217 119 6" : "14 116 144"} / ${(0.45 * strength).toFixed(2)})`;
    piece.title = Number(part).toFixed(2);
    line.append(piece, " ");
  }
  return line;
}

function pictured(image) {
  if (!Object.hasOwn(pictures, image)) return [];
  const picture = document.createElement("img");
  picture.src = "data:image/webp;base64," + pictures[image];
  picture.alt = "";
  return [picture];
}

// Each picture is in the page once: those of the instances are the ones that the evidence shows.
for (const image of document.querySelectorAll("img[data-image]")) image.src = pictured(image.dataset.image)[0].src;

// One image: each source's caption as the classifier reads it, with the guess and how sure it is.
function compared({ image, said }) {
  const item = element("div", "", "beside");
  item.tabIndex = 0; // it scrolls sideways where the page is narrow, and keys must reach it
  item.setAttribute("role", "group");
  item.setAttribute("aria-label", `image ${image}`);
  item.append(...pictured(image), element("h3", `image ${image}, labelled ${said[0].labelled}`));
  const table = element("table", "");
  for (const one of said) {
    const row = table.insertRow();
    row.append(element("th", one.source));
    const caption = row.insertCell();
    caption.append(coloured(one.parts));
    const sure = `${one.guessed} ${Math.round(100 * Number(one.sure))} %`;
    row.append(element("td", sure, one.guessed === one.labelled ? "right n" : "wrong n"));
    row.append(element("td", Number(one.total).toFixed(2), "n"));
  }
  const head = table.createTHead().insertRow();
  for (const name of ["source", "caption as it is read", "guess", "total"]) head.append(element("th", name, name === "guess" || name === "total" ? "n" : ""));
  item.append(table);
  return item;
}

// What is large is compressed. It is text of this page, so that nothing is fetched.
async function unpacked(name) {
  const bytes = Uint8Array.from(atob(document.getElementById(name).textContent), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

async function load() {
  evidence = decoded(JSON.parse(await unpacked("data")));
  for (const { system, about, images } of JSON.parse(await unpacked("compared"))) {
    const part = document.createElement("details");
    part.append(element("summary", `${system} (${about})`), ...images.map(compared));
    document.getElementById("beside-list").append(part);
  }
  document.querySelector("#beside-list details")?.setAttribute("open", "");
  document.documentElement.dataset.loaded = "yes";
}
const loading = load().then(() => true, (error) => {
  document.getElementById("old").hidden = false;
  document.getElementById("save").hidden = true;
  console.warn(error);
  return false;
});

// The results as they were: measurements are kept by column, but where that would round a number.
async function results() {
  const text = await unpacked("results"), found = JSON.parse(text);
  if (Array.isArray(found.measurements)) return text;
  const columns = Object.entries(found.measurements);
  found.measurements = columns[0][1].map((_, n) => Object.fromEntries(columns.map(([name, values]) => [name, values[n]])));
  return JSON.stringify(found, null, 1);
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

// Light or dark as the reader's system has it, until the reader says otherwise.
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
