"use strict";
// Names and captions are untrusted: they are shown through textContent only, never parsed as markup.
const at = (id) => document.getElementById(id);
const FILTERS = ["metric", "attribute", "system", "group", "term"];
const NONE_LABELS = { group: "all people", attribute: "none", system: "none", metric: "none", term: "none" };
const listForm = at("find"), captionForm = at("narrow");
const count = (number) => Number(number).toLocaleString("en");
let cards = {};
let requests = { list: 0, evidence: 0 };

function element(tag, text, className) {
  const created = document.createElement(tag);
  created.textContent = text ?? "";
  if (className) created.className = className;
  return created;
}

// The view is in the address behind #, so that Back, reloading and bookmarks work as expected.
const urlState = () => new URLSearchParams(location.hash.slice(1));

function go(changes, push = false) {
  const next = urlState();
  for (const [name, value] of Object.entries(changes)) value === null ? next.delete(name) : next.set(name, value);
  const target = "#" + next;
  if (target === (location.hash || "#")) return;
  push ? history.pushState(null, "", target) : history.replaceState(null, "", target);
  show();
}

async function fetchJson(path, query) {
  const response = await fetch(`${path}?${query}`);
  const data = await response.json();
  if (!response.ok) throw new Error(data.reason);
  return data;
}

// Returns null for all but the newest request of a part: a slow response must not replace a later one.
async function latest(part, path, query) {
  const request = ++requests[part];
  const container = at(part === "list" ? "rows" : "captions");
  container.classList.add("busy");
  try {
    const data = await fetchJson(path, query);
    if (request !== requests[part]) return null;
    at("trouble").hidden = true;
    return data;
  } catch (error) {
    if (request === requests[part]) showError(error);
    return null;
  } finally {
    if (request === requests[part]) container.classList.remove("busy");
  }
}

function showError(error) {
  at("trouble").textContent = error instanceof TypeError ? "The server does not answer; is the command still running?" : error.message;
  at("trouble").hidden = false;
}

const cardOf = (metric) => (cards && Object.hasOwn(cards, metric) && cards[metric]) || {};

// ---- the list

function fillSelect(select, choices, value, noneLabel) {
  const any = new Option("any", "*");
  const options = choices.map(([name, n]) => new Option((name ?? noneLabel) + (n === undefined ? "" : ` (${count(n)})`), name ?? ""));
  if (value !== null && !options.some((option) => option.value === value)) options.push(new Option(`${value || noneLabel} (0)`, value));
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

function pages(nav, data, name) {
  nav.hidden = data.pages < 2;
  if (nav.hidden) return nav.replaceChildren();
  const goTo = (page) => {
    at(name === "page" ? "list-count" : "evidence-count").scrollIntoView({ block: "nearest" });
    go({ [name]: String(page) });
  };
  const step = (text, page, label) => {
    const button = element("button", text);
    button.type = "button";
    button.setAttribute("aria-label", label);
    button.dataset.step = text;
    button.disabled = page < 1 || page > data.pages || page === data.page;
    button.addEventListener("click", () => goTo(page));
    return button;
  };
  const label = element("label", "Page ");
  const input = document.createElement("input");
  Object.assign(input, { type: "number", min: 1, max: data.pages, value: data.page });
  input.addEventListener("change", () => {
    const page = Math.min(data.pages, Math.max(1, Math.trunc(Number(input.value)) || 1));
    input.value = page;
    goTo(page);
  });
  label.append(input, ` of ${count(data.pages)}`);
  // Keeps the focus on the pressed button, though the bar is rebuilt.
  const pressed = nav.contains(document.activeElement) ? document.activeElement.dataset.step : null;
  nav.replaceChildren(
    step("«", 1, "First page"), step("‹", data.page - 1, "Page before"), label,
    step("›", data.page + 1, "Next page"), step("»", data.pages, "Last page"),
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
  const data = await latest("list", "/api/measurements", query);
  if (!data) return;
  if (data.pages && data.page > data.pages) return go({ page: String(data.pages) });
  for (const name of FILTERS) fillSelect(listForm.elements[name], data.choices[name], state.get(name), NONE_LABELS[name]);
  listForm.elements.sort.value = state.get("sort") || "";
  if (document.activeElement !== listForm.elements.search) listForm.elements.search.value = state.get("search") || "";
  const first = (data.page - 1) * data.size + 1;
  at("list-count").textContent = data.total ? `${count(first)}–${count(first + data.rows.length - 1)} of ${count(data.total)} measurements` : "No measurement matches.";
  at("clear").hidden = !LIST.some((name) => name !== "page" && state.has(name));
  at("rows").replaceChildren(...data.rows.map((m) => rowOf(m, state.get("id"))));
  pages(at("list-pages"), data, "page");
}

// ---- the evidence of a measurement

// Marks the words that counted, as whole words, and the search text anywhere.
function captionLine(caption, words, search) {
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

function contributionLine(contributions) {
  const line = element("p", "", "parts");
  const pairs = contributions.filter(Array.isArray);
  const most = Math.max(0.5, ...pairs.map(([, value]) => Math.abs(Number(value) || 0)));
  for (const [word, value] of pairs) {
    const piece = element("span", String(word));
    const strength = Math.min(1, Math.abs(Number(value) || 0) / most);
    piece.style.backgroundColor = `rgb(${value > 0 ? "217 119 6" : "14 116 144"} / ${(0.55 * strength).toFixed(2)})`;
    piece.title = Number(value).toFixed(2);
    line.append(piece, " ");
  }
  return line;
}

function parseDetail(detail) {
  try {
    const about = JSON.parse(detail);
    return about && typeof about === "object" && !Array.isArray(about) ? about : {};
  } catch { return detail ? { detail } : {}; }
}

function asText(value) {
  if (Array.isArray(value)) return value.map(asText).join(", ");
  if (typeof value === "number") return Number(value.toPrecision(4));
  if (!value || typeof value !== "object") return value;
  return Object.entries(value).map(([key, part]) => `${key} ${asText(part)}`).join(", ");
}

function thumbnailOf(row) {
  if (!row.full && !row.thumbnail) return [];
  const source = (path) => `${path}?${new URLSearchParams({ image: row.image })}`;
  const thumbnail = row.thumbnail && source("/api/thumbnail");
  const img = document.createElement("img");
  img.loading = "lazy";
  img.alt = "";
  img.src = row.full ? source("/image") : thumbnail;
  const button = element("button", "", "thumbnail");
  button.type = "button";
  button.setAttribute("aria-label", `Show image ${row.image}`);
  // An image of a type that the browser does not support has a thumbnail that it does.
  img.addEventListener("error", () => { if (thumbnail && !img.src.includes("/api/thumbnail")) img.src = thumbnail; else button.remove(); });
  button.addEventListener("click", () => {
    at("large-image").src = img.src;
    at("large-image").alt = `image ${row.image}`;
    at("large-name").textContent = `image ${row.image}`;
    at("large").showModal();
  });
  button.append(img);
  return [button];
}

function captionOf(row, search) {
  const about = parseDetail(row.detail);
  const item = document.createElement("li");
  const words = element("div");
  words.append(captionLine(row.caption, Array.isArray(about.words) ? about.words : [], search));
  if (Array.isArray(about.parts)) words.append(contributionLine(about.parts));
  const facts = Object.entries(about).filter(([key, value]) => !["words", "parts", "effect", "by pairs"].includes(key) && value !== null && String(value) !== "")
    .map(([key, value]) => `${key} ${asText(value)}`);
  words.append(element("p", [row.system, `image ${row.image}`, ...facts].filter(Boolean).join(" · "), "details"));
  item.append(words, ...thumbnailOf(row));
  return item;
}

function describe(m) {
  const card = cardOf(m.metric);
  const term = (Array.isArray(card.terms) ? card.terms : []).find((entry) => entry.name === m.term);
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
  if (id === null) { requests.evidence++; return; }
  at("rows").querySelector(`button[data-id="${CSS.escape(id)}"]`)?.setAttribute("aria-current", "true");
  const query = new URLSearchParams({ id, search: state.get("find") || "", sort: state.get("by") || "", page: state.get("at") || "1" });
  if (state.has("of")) query.set("system", state.get("of"));
  const data = await latest("evidence", "/api/evidence", query);
  if (!data) return;
  if (data.pages && data.page > data.pages) return go({ at: String(data.pages) });
  const m = data.measurement;
  describe(m);
  captionForm.hidden = !m.evidence;
  fillSelect(captionForm.elements.of, data.systems.map((name) => [name]), state.get("of"), "none");
  captionForm.elements.by.value = state.get("by") || "";
  if (document.activeElement !== captionForm.elements.find) captionForm.elements.find.value = state.get("find") || "";
  const first = (data.page - 1) * data.size + 1;
  const suffix = data.total === m.evidence ? "" : ` (${count(m.evidence)} without the search)`;
  at("evidence-count").textContent = !m.evidence ? "No caption was kept for this number."
    : !data.total ? "No caption matches."
    : `${count(first)}–${count(first + data.rows.length - 1)} of ${count(data.total)} captions${suffix}`;
  at("legend").hidden = !data.rows.some((row) => Array.isArray(parseDetail(row.detail).parts));
  at("captions").replaceChildren(...data.rows.map((row) => captionOf(row, state.get("find"))));
  pages(at("evidence-pages"), data, "at");
}

// ---- user input

let shownState = { list: null, evidence: null };
const LIST = [...FILTERS, "search", "sort", "page"], EVIDENCE = ["id", "find", "of", "by", "at"];

function show() {
  const state = urlState();
  const key = (names) => JSON.stringify(names.map((name) => state.get(name)));
  const now = { list: key(LIST), evidence: key(EVIDENCE) };
  const previous = shownState;
  shownState = now;
  if (now.list !== previous.list) showList(state);
  if (now.evidence !== previous.evidence) showEvidence(state);
}

function debounce(callback, wait = 200) {
  let timer;
  return () => { clearTimeout(timer); timer = setTimeout(callback, wait); };
}

const searchList = debounce(() => go({ search: listForm.elements.search.value || null, page: null }));
const searchCaptions = debounce(() => go({ find: captionForm.elements.find.value || null, at: null }));
listForm.elements.search.addEventListener("input", searchList);
captionForm.elements.find.addEventListener("input", searchCaptions);
for (const form of [listForm, captionForm]) form.addEventListener("submit", (event) => event.preventDefault());
for (const name of FILTERS) listForm.elements[name].addEventListener("change", ({ target }) => go({ [name]: target.value === "*" ? null : target.value, page: null }));
listForm.elements.sort.addEventListener("change", ({ target }) => go({ sort: target.value || null, page: null }));
captionForm.elements.of.addEventListener("change", ({ target }) => go({ of: target.value === "*" ? null : target.value, at: null }));
captionForm.elements.by.addEventListener("change", ({ target }) => go({ by: target.value || null, at: null }));
at("clear").addEventListener("click", () => {
  listForm.elements.search.value = "";
  go(Object.fromEntries(LIST.map((name) => [name, null])));
  listForm.elements.search.focus();
});
at("rows").addEventListener("click", (event) => {
  const button = event.target.closest("button[data-id]");
  if (!button) return;
  captionForm.elements.find.value = "";
  go({ id: button.dataset.id, find: null, of: null, by: null, at: null }, true);
  if (at("list").offsetParent === null) { scrollTo(0, 0); at("evidence-title").focus(); }
  at("evidence").scrollTop = 0;
});
at("back").addEventListener("click", () => {
  const id = urlState().get("id");
  go({ id: null, find: null, of: null, by: null, at: null }, true);
  at("rows").querySelector(`button[data-id="${CSS.escape(id)}"]`)?.focus();
});
at("large").addEventListener("click", (event) => { if (event.target === at("large")) at("large").close(); });
addEventListener("popstate", show);

async function start() {
  if (new URLSearchParams(location.search).has("token")) history.replaceState(null, "", location.pathname + location.hash);
  try {
    const about = await fetchJson("/api/results", "");
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
  } catch (error) { showError(error); }
  show();
}
start();
