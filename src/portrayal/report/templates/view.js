"use strict";
// Names and captions are other people's text: they are shown through textContent only, never read as markup.
const at = (id) => document.getElementById(id);
const FILTERS = ["metric", "attribute", "system", "group", "term"];
const NOBODY = { group: "all people", attribute: "none", system: "none", metric: "none", term: "none" };
const find = at("find"), narrow = at("narrow");
const count = (number) => Number(number).toLocaleString("en");
let cards = {};
let asked = { list: 0, evidence: 0 };

function element(tag, text, className) {
  const made = document.createElement(tag);
  made.textContent = text ?? "";
  if (className) made.className = className;
  return made;
}

// What is looked at stands in the address behind #, so that Back, reloading and bookmarks do what people expect.
const seen = () => new URLSearchParams(location.hash.slice(1));

function go(changes, push = false) {
  const next = seen();
  for (const [name, value] of Object.entries(changes)) value === null ? next.delete(name) : next.set(name, value);
  const target = "#" + next;
  if (target === (location.hash || "#")) return;
  push ? history.pushState(null, "", target) : history.replaceState(null, "", target);
  show();
}

async function ask(path, query) {
  const answer = await fetch(`${path}?${query}`);
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.error);
  return told;
}

// Only the newest question of a part is answered: a slow answer must not replace a later one.
async function latest(part, path, query) {
  const turn = ++asked[part];
  const place = at(part === "list" ? "rows" : "captions");
  place.classList.add("busy");
  try {
    const told = await ask(path, query);
    if (turn !== asked[part]) return null;
    at("trouble").hidden = true;
    return told;
  } catch (error) {
    if (turn === asked[part]) trouble(error);
    return null;
  } finally {
    if (turn === asked[part]) place.classList.remove("busy");
  }
}

function trouble(error) {
  at("trouble").textContent = error instanceof TypeError ? "The server does not answer; is the command still running?" : error.message;
  at("trouble").hidden = false;
}

const cardOf = (metric) => (cards && Object.hasOwn(cards, metric) && cards[metric]) || {};

// ---- the list

function fill(select, choices, value, nobody) {
  const any = new Option("any", "*");
  const options = choices.map(([name, n]) => new Option((name ?? nobody) + (n === undefined ? "" : ` (${count(n)})`), name ?? ""));
  if (value !== null && !options.some((option) => option.value === value)) options.push(new Option(`${value || nobody} (0)`, value));
  select.replaceChildren(any, ...options);
  select.value = value ?? "*";
}

function rowOf(m, chosen) {
  const item = document.createElement("li");
  const button = element("button");
  button.type = "button";
  button.dataset.id = m.id;
  if (m.id === chosen) button.setAttribute("aria-current", "true");
  button.append(
    element("span", [m.metric, m.term, m.item].filter(Boolean).join(" · "), "what"),
    element("span", m.shown, m.value === null ? "number undefined" : "number"),
    element("span", [m.system, m.group ?? "all people", m.attribute && `by ${m.attribute}`].filter(Boolean).join(" · "), "who"),
    element("span", m.value === null ? "undefined" : m.interval, "less"),
  );
  button.title = m.value === null ? m.reason ?? "" : m.facts;
  item.append(button);
  return item;
}

function pages(nav, told, name) {
  nav.hidden = told.pages < 2;
  if (nav.hidden) return nav.replaceChildren();
  const turn = (page) => {
    at(name === "page" ? "list-count" : "evidence-count").scrollIntoView({ block: "nearest" });
    go({ [name]: String(page) });
  };
  const step = (text, page, label) => {
    const button = element("button", text);
    button.type = "button";
    button.setAttribute("aria-label", label);
    button.dataset.step = text;
    button.disabled = page < 1 || page > told.pages || page === told.page;
    button.addEventListener("click", () => turn(page));
    return button;
  };
  const label = element("label", "Page ");
  const input = document.createElement("input");
  Object.assign(input, { type: "number", min: 1, max: told.pages, value: told.page });
  input.addEventListener("change", () => {
    const page = Math.min(told.pages, Math.max(1, Math.trunc(Number(input.value)) || 1));
    input.value = page;
    turn(page);
  });
  label.append(input, ` of ${count(told.pages)}`);
  // The button that was pressed stays in focus, though the bar is made anew.
  const pressed = nav.contains(document.activeElement) ? document.activeElement.dataset.step : null;
  nav.replaceChildren(
    step("«", 1, "First page"), step("‹", told.page - 1, "Page before"), label,
    step("›", told.page + 1, "Next page"), step("»", told.pages, "Last page"),
  );
  if (pressed) ([...nav.querySelectorAll("button:enabled")].find((button) => button.dataset.step === pressed) ?? nav.querySelector("button:enabled"))?.focus({ preventScroll: true });
}

async function showList(state) {
  const query = new URLSearchParams();
  for (const name of FILTERS) if (state.has(name)) query.set(name, state.get(name));
  const [sort, order] = (state.get("sort") || "").split(" ");
  query.set("search", state.get("search") || "");
  query.set("sort", sort);
  query.set("order", order || "");
  query.set("page", state.get("page") || "1");
  const told = await latest("list", "/api/measurements", query);
  if (!told) return;
  if (told.pages && told.page > told.pages) return go({ page: String(told.pages) });
  for (const name of FILTERS) fill(find.elements[name], told.choices[name], state.get(name), NOBODY[name]);
  find.elements.sort.value = state.get("sort") || "";
  if (document.activeElement !== find.elements.search) find.elements.search.value = state.get("search") || "";
  const first = (told.page - 1) * told.size + 1;
  at("list-count").textContent = told.total ? `${count(first)} to ${count(first + told.rows.length - 1)} of ${count(told.total)} measurements` : "No measurement is like that.";
  at("clear").hidden = !LIST.some((name) => name !== "page" && state.has(name));
  at("rows").replaceChildren(...told.rows.map((m) => rowOf(m, state.get("id"))));
  pages(at("list-pages"), told, "page");
}

// ---- the evidence of one

// Marked are the words that counted, as words, and what is searched for, wherever it stands.
function marked(caption, words, search) {
  const line = element("p", "", "caption");
  const escape = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  const counted = words.filter((word) => typeof word === "string" && word.trim()).sort((a, b) => b.length - a.length)
    .map((word) => escape(word.trim()).replace(/\s+/g, "\\s+"));
  const patterns = counted.length ? [`(?<![\\p{L}\\p{N}-])(?:${counted.join("|")})(?![\\p{L}\\p{N}-])`] : [];
  if (search) patterns.push(escape(search));
  const pieces = patterns.length ? (caption ?? "").split(new RegExp(`(${patterns.join("|")})`, "giu")) : [caption ?? ""];
  pieces.forEach((piece, index) => line.append(index % 2 ? element("mark", piece) : piece));
  return line;
}

function coloured(parts) {
  const line = element("p", "", "parts");
  const pairs = parts.filter(Array.isArray);
  const most = Math.max(0.5, ...pairs.map(([, part]) => Math.abs(Number(part) || 0)));
  for (const [word, part] of pairs) {
    const piece = element("span", String(word));
    const strength = Math.min(1, Math.abs(Number(part) || 0) / most);
    piece.style.backgroundColor = `rgb(${part > 0 ? "217 119 6" : "14 116 144"} / ${(0.55 * strength).toFixed(2)})`;
    piece.title = Number(part).toFixed(2);
    line.append(piece, " ");
  }
  return line;
}

function parsed(detail) {
  try {
    const about = JSON.parse(detail);
    return about && typeof about === "object" && !Array.isArray(about) ? about : {};
  } catch { return detail ? { detail } : {}; }
}

function told(value) {
  if (Array.isArray(value)) return value.map(told).join(", ");
  if (typeof value === "number") return Number(value.toPrecision(4));
  if (!value || typeof value !== "object") return value;
  return Object.entries(value).map(([key, part]) => `${key} ${told(part)}`).join(", ");
}

function pictured(row) {
  if (!row.full && !row.small) return [];
  const source = (path) => `${path}?${new URLSearchParams({ image: row.image })}`;
  const small = row.small && source("/api/picture");
  const picture = document.createElement("img");
  picture.loading = "lazy";
  picture.alt = "";
  picture.src = row.full ? source("/image") : small;
  const button = element("button", "", "picture");
  button.type = "button";
  button.setAttribute("aria-label", `Picture of image ${row.image}`);
  // A kind of picture that the browser does not know has a small copy that it does.
  picture.addEventListener("error", () => { if (small && !picture.src.includes("/api/picture")) picture.src = small; else button.remove(); });
  button.addEventListener("click", () => {
    at("large-picture").src = picture.src;
    at("large-picture").alt = `image ${row.image}`;
    at("large-name").textContent = `image ${row.image}`;
    at("large").showModal();
  });
  button.append(picture);
  return [button];
}

function captionOf(row, search) {
  const about = parsed(row.detail);
  const item = document.createElement("li");
  const words = element("div");
  words.append(marked(row.caption, Array.isArray(about.words) ? about.words : [], search));
  if (Array.isArray(about.parts)) words.append(coloured(about.parts));
  const facts = Object.entries(about).filter(([key, value]) => !["words", "parts", "effect", "by pairs"].includes(key) && value !== null && String(value) !== "")
    .map(([key, value]) => `${key} ${told(value)}`);
  words.append(element("p", [row.system, `image ${row.image}`, ...facts].filter(Boolean).join(" · "), "details"));
  item.append(words, ...pictured(row));
  return item;
}

function describe(m) {
  const card = cardOf(m.metric);
  const term = (Array.isArray(card.terms) ? card.terms : []).find((one) => one.name === m.term);
  at("evidence-title").textContent = [m.metric, m.term, m.item, m.system, m.group ?? "all people"].filter(Boolean).join(" · ");
  const value = at("evidence-value");
  value.replaceChildren(m.value === null ? `Undefined: ${m.reason ?? "no reason was recorded"}` : m.shown);
  if (m.value !== null && m.interval) value.append(" ", element("small", m.interval));
  at("evidence-question").textContent = term?.meaning ? `${term.meaning} (${[m.unit, m.better && `${m.better} is better`].filter(Boolean).join("; ")})` : card.question ?? "";
  at("evidence-facts").textContent = [m.attribute && `by ${m.attribute}`, m.facts, m.value === null ? null : m.reason].filter(Boolean).join(" · ");
  at("evidence-how").textContent = m.settings;
  at("evidence-settings").hidden = !m.settings;
}

async function showEvidence(state) {
  const id = state.get("id");
  document.body.classList.toggle("reading", id !== null);
  document.body.classList.toggle("choosing", id === null);
  at("nothing").hidden = id !== null;
  at("chosen").hidden = id === null;
  for (const button of at("rows").querySelectorAll("button")) button.toggleAttribute("aria-current", false);
  if (id === null) { asked.evidence++; return; }
  at("rows").querySelector(`button[data-id="${CSS.escape(id)}"]`)?.setAttribute("aria-current", "true");
  const query = new URLSearchParams({ id, search: state.get("find") || "", sort: state.get("by") || "", page: state.get("at") || "1" });
  if (state.has("of")) query.set("system", state.get("of"));
  const found = await latest("evidence", "/api/evidence", query);
  if (!found) return;
  if (found.pages && found.page > found.pages) return go({ at: String(found.pages) });
  const m = found.measurement;
  describe(m);
  narrow.hidden = !m.evidence;
  fill(narrow.elements.of, found.systems.map((name) => [name]), state.get("of"), "none");
  narrow.elements.by.value = state.get("by") || "";
  if (document.activeElement !== narrow.elements.find) narrow.elements.find.value = state.get("find") || "";
  const first = (found.page - 1) * found.size + 1;
  const of = found.total === m.evidence ? "" : ` (${count(m.evidence)} without the search)`;
  at("evidence-count").textContent = !m.evidence ? "No caption was kept for this number."
    : !found.total ? "No caption is like that."
    : `${count(first)} to ${count(first + found.rows.length - 1)} of ${count(found.total)} captions${of}`;
  at("legend").hidden = !found.rows.some((row) => Array.isArray(parsed(row.detail).parts));
  at("captions").replaceChildren(...found.rows.map((row) => captionOf(row, state.get("find"))));
  pages(at("evidence-pages"), found, "at");
}

// ---- what a reader does

let before = { list: null, evidence: null };
const LIST = [...FILTERS, "search", "sort", "page"], EVIDENCE = ["id", "find", "of", "by", "at"];

function show() {
  const state = seen();
  const key = (names) => JSON.stringify(names.map((name) => state.get(name)));
  const now = { list: key(LIST), evidence: key(EVIDENCE) };
  const old = before;
  before = now;
  if (now.list !== old.list) showList(state);
  if (now.evidence !== old.evidence) showEvidence(state);
}

function later(work, wait = 200) {
  let timer;
  return () => { clearTimeout(timer); timer = setTimeout(work, wait); };
}

const searchList = later(() => go({ search: find.elements.search.value || null, page: null }));
const searchCaptions = later(() => go({ find: narrow.elements.find.value || null, at: null }));
find.elements.search.addEventListener("input", searchList);
narrow.elements.find.addEventListener("input", searchCaptions);
for (const form of [find, narrow]) form.addEventListener("submit", (event) => event.preventDefault());
for (const name of FILTERS) find.elements[name].addEventListener("change", ({ target }) => go({ [name]: target.value === "*" ? null : target.value, page: null }));
find.elements.sort.addEventListener("change", ({ target }) => go({ sort: target.value || null, page: null }));
narrow.elements.of.addEventListener("change", ({ target }) => go({ of: target.value === "*" ? null : target.value, at: null }));
narrow.elements.by.addEventListener("change", ({ target }) => go({ by: target.value || null, at: null }));
at("clear").addEventListener("click", () => {
  find.elements.search.value = "";
  go(Object.fromEntries(LIST.map((name) => [name, null])));
  find.elements.search.focus();
});
at("rows").addEventListener("click", (event) => {
  const button = event.target.closest("button[data-id]");
  if (!button) return;
  narrow.elements.find.value = "";
  go({ id: button.dataset.id, find: null, of: null, by: null, at: null }, true);
  if (at("list").offsetParent === null) { scrollTo(0, 0); at("evidence-title").focus(); }
  at("evidence").scrollTop = 0;
});
at("back").addEventListener("click", () => {
  const id = seen().get("id");
  go({ id: null, find: null, of: null, by: null, at: null }, true);
  at("rows").querySelector(`button[data-id="${CSS.escape(id)}"]`)?.focus();
});
at("large").addEventListener("click", (event) => { if (event.target === at("large")) at("large").close(); });
addEventListener("popstate", show);

async function start() {
  if (new URLSearchParams(location.search).has("token")) history.replaceState(null, "", location.pathname + location.hash);
  try {
    const about = await ask("/api/results", "");
    const origin = about.provenance, study = origin.study && typeof origin.study === "object" ? origin.study : {};
    cards = about.cards && typeof about.cards === "object" ? about.cards : {};
    at("title").textContent = study.name ? `Audit of ${study.name}` : about.folder;
    document.title = at("title").textContent + " · Portrayal";
    at("about").textContent = [
      Array.isArray(study.systems) && study.systems.join(", "),
      typeof study.images === "number" && `${count(study.images)} images`,
      `${count(about.measurements)} measurements`,
    ].filter(Boolean).join(" · ");
    at("written").hidden = !about.page;
    at("origin").textContent = [origin.version && `Portrayal ${origin.version}`, origin.started, study.digest && `study ${study.digest}`, origin.command].filter(Boolean).join(" · ");
  } catch (error) { trouble(error); }
  show();
}
start();
