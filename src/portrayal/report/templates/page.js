"use strict";
// Captions are shown through textContent only, so that nothing in them is ever read as markup.
const evidence = JSON.parse(document.getElementById("data").textContent);
const pictures = JSON.parse(document.getElementById("pictures").textContent);
const dialog = document.getElementById("evidence");
const list = document.getElementById("evidence-list");

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

function parsed(detail) {
  try { return JSON.parse(detail) || {}; } catch { return { detail }; }
}

function open(button) {
  const rows = evidence[button.dataset.id] || [];
  const total = Number(button.dataset.total);
  document.getElementById("evidence-title").textContent = button.dataset.what + " = " + button.textContent;
  document.getElementById("evidence-count").textContent =
    rows.length < total ? `${rows.length} of ${total.toLocaleString("en")} captions, spread evenly` : `${total} captions`;
  list.replaceChildren(...rows.map(([image, caption, detail]) => {
    const about = detail ? parsed(detail) : {};
    const item = document.createElement("li");
    const facts = Object.entries(about).filter(([key, value]) => key !== "words" && String(value) !== "")
      .map(([key, value]) => `${key} ${Array.isArray(value) ? value.join(", ") : value}`);
    if (Object.hasOwn(pictures, image)) {
      const picture = document.createElement("img");
      picture.src = "data:image/webp;base64," + pictures[image];
      picture.alt = "";
      item.append(picture);
    }
    item.append(marked(caption, about.words || []), element("p", [`image ${image}`, ...facts].join(" · "), "facts"));
    return item;
  }));
  dialog.showModal();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-id]");
  if (button) open(button);
  if (event.target === dialog) dialog.close();
});
