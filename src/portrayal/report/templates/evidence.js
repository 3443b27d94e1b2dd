
// ---- The captions behind a number, as a table to search, filter, sort and turn over.
const ON_A_PAGE = 25, MOST_CHOICES = 12, MOST_FACTS = 12, LONG = 60;
const at = (id) => document.getElementById(id);
const find = at("evidence-find");
let shown = { rows: [], columns: [], filters: [], sort: null, page: 0 };

// A column for each fact, that of the number itself first; what is long, and what few rows tell where there is much, stands together in the last one.
function columnsOf(rows, title) {
  const known = new Map();
  for (const { about } of rows) {
    for (const [key, value] of about) {
      const seen = known.get(key) ?? { count: 0, letters: 0 };
      known.set(key, { count: seen.count + 1, letters: seen.letters + String(value).length });
    }
  }
  const short = [...known].filter(([, { count, letters }]) => letters <= LONG * count);
  const kept = new Set([...short].sort(([, a], [, b]) => b.count - a.count).slice(0, MOST_FACTS).map(([key]) => key));
  const facts = short.filter(([key]) => kept.has(key)).map(([key]) => ({ name: key, fact: true, value: (row) => row.about.get(key) }));
  const own = title.split(/ · | = /), isOwn = ({ name }) => own.includes(name);
  facts.sort((a, b) => isOwn(b) - isOwn(a));
  const rest = [...known.keys()].filter((key) => !kept.has(key));
  // Who speaks is said where it is not the one whose number it is.
  const several = rows.some(({ source }) => source !== rows[0].source || source === HUMAN);
  return [
    ...(rows.some(({ image }) => Object.hasOwn(pictures, image)) ? [{ name: "picture", cell: ({ image }) => pictured(image) }] : []),
    { name: "image", value: ({ image }) => image, cell: (row) => [row.source ? nameOf(row.image) : row.image] },
    ...(several ? [{ name: "source", fact: true, value: ({ source }) => source || undefined }] : []),
    { name: "caption", value: ({ caption }) => caption, cell: (row) => [marked(row.caption, row.words), ...(row.parts.length ? [coloured(row.parts)] : [])] },
    ...facts,
    ...(rest.length ? [{ name: "more", cell: (row) => more(row, rest) }] : []),
  ];
}

function nameOf(image) {
  const button = element("button", image, "image");
  button.type = "button";
  button.title = "what is said of this image";
  button.addEventListener("click", () => showOne(image));
  return button;
}

function more({ about }, keys) {
  const mine = keys.filter((key) => about.has(key));
  if (!mine.length) return [];
  const part = document.createElement("details");
  part.append(element("summary", mine.join(", ")), ...mine.map((key) => element("p", mine.length > 1 ? `${key}: ${about.get(key)}` : about.get(key))));
  return [part];
}

// Numbers as numbers, before texts; what is not told comes last, whichever way.
function sorted(rows, { value }, down) {
  const order = (a, b) => typeof a === "number" && typeof b === "number" ? a - b
    : typeof a === typeof b ? inOrder(a, b) : typeof a === "number" ? -1 : 1;
  return rows.map((row) => [value(row), row])
    .sort(([a], [b]) => a === undefined || b === undefined ? (a === undefined) - (b === undefined) : down ? order(b, a) : order(a, b))
    .map(([, row]) => row);
}

function filtersOf(rows, columns) {
  return columns.filter(({ fact }) => fact).flatMap((column) => {
    const times = new Map();
    for (const value of rows.map(column.value)) if (value !== undefined) times.set(value, (times.get(value) ?? 0) + 1);
    if (times.size < 2 || times.size > MOST_CHOICES || times.size >= rows.length) return [];
    const values = sorted([...times.keys()], { value: (one) => one }, false);
    const select = document.createElement("select");
    select.append(new Option("all", ""), ...values.map((value, n) => new Option(`${value} (${times.get(value)})`, n)));
    select.addEventListener("change", () => arrange());
    const label = element("label", `${column.name} `);
    label.append(select);
    return [{ label, lets: (row) => select.value === "" || column.value(row) === values[select.value] }];
  });
}

// Roles are said, since a table that is laid out as cards is no table to every browser.
function cellOf(tag, role, label, ...content) {
  const cell = document.createElement(tag);
  cell.setAttribute("role", role);
  if (label) cell.dataset.label = label; // stands before what it names, on cards
  cell.append(...content);
  return cell;
}

function rowOf(cells) {
  const row = document.createElement("tr");
  row.setAttribute("role", "row");
  row.append(...cells);
  return row;
}

function part(tag, ...rows) {
  const made = document.createElement(tag);
  made.setAttribute("role", "rowgroup");
  made.append(...rows);
  return made;
}

function headingOf(column) {
  const cell = cellOf("th", "columnheader");
  cell.scope = "col";
  if (!column.value) {
    cell.append(column.name);
    return cell;
  }
  const button = element("button", column.name);
  button.type = "button";
  button.addEventListener("click", () => {
    const { sort } = shown;
    shown.sort = { column, down: sort?.column === column && !sort.down };
    arrange();
  });
  cell.append(button);
  column.heading = cell;
  return cell;
}

function bodyCell(column, row) {
  const value = column.value?.(row), named = column.name === "image" && !column.fact;
  const content = column.cell ? column.cell(row) : value === undefined ? [] : [String(value)];
  const cell = cellOf(named ? "th" : "td", named ? "rowheader" : "cell", column.name, ...content);
  if (named) cell.scope = "row";
  cell.classList.add(column.fact ? "fact" : `the-${column.name}`);
  cell.classList.toggle("empty", !content.length);
  cell.classList.toggle("n", Boolean(column.fact) && typeof value === "number");
  return cell;
}

// What is shown of a number's captions: those that are let through, in the order that was chosen, from page 1.
function arrange(page = 0) {
  const wanted = find.value.trim().toLowerCase(), { rows, columns, filters, sort } = shown;
  const found = rows.filter((row) => row.text.includes(wanted) && filters.every(({ lets }) => lets(row)));
  const ordered = sort ? sorted(found, sort.column, sort.down) : found;
  const last = Math.max(0, Math.ceil(ordered.length / ON_A_PAGE) - 1), first = Math.min(page, last) * ON_A_PAGE;
  const now = ordered.slice(first, first + ON_A_PAGE);
  shown.page = Math.min(page, last);
  for (const column of columns) column.heading?.setAttribute("aria-sort", sort?.column !== column ? "none" : sort.down ? "descending" : "ascending");
  at("evidence-table").tBodies[0].replaceChildren(...now.map((row) => rowOf(columns.map((column) => bodyCell(column, row)))));
  const of = found.length === rows.length ? "" : ` found (${rows.length} in all)`;
  at("evidence-found").textContent = found.length ? `${first + 1}–${first + now.length} of ${found.length}${of}` : `0${of}`;
  // Not disabled, which would lose the focus of who turns pages with keys.
  at("evidence-before").setAttribute("aria-disabled", shown.page === 0);
  at("evidence-next").setAttribute("aria-disabled", shown.page === last);
  for (const name of ["before", "next"]) at(`evidence-${name}`).hidden = last === 0;
}

function turn(step) {
  const page = shown.page + step, before = shown.page;
  arrange(Math.max(0, page));
  if (shown.page !== before) at("evidence-table").scrollIntoView({ block: "start" });
}

function titleOf(button) {
  if (button.closest(".verdict")) return button.closest("li").firstChild.textContent.trim();
  const cell = button.closest("td"), heading = cell.closest("table").tHead.rows[0].cells[cell.cellIndex];
  return [button.closest("tr").dataset.what, heading.textContent].filter(Boolean).join(" · ") + " = " + button.textContent;
}

async function open(button) {
  if (!(await loading)) return;
  const title = titleOf(button), rows = evidence.rows(button.dataset.id).map(prepared), columns = columnsOf(rows, title);
  const total = evidence.total(button.dataset.id, rows.length), count = (number) => number.toLocaleString("en");
  shown = { rows, columns, filters: filtersOf(rows, columns), sort: null, page: 0, title };
  at("evidence-count").textContent = rows.length < total ? `${count(rows.length)} of ${count(total)} captions, spread evenly.` : `${count(total)} captions`;
  at("evidence-more").hidden = rows.length === total;
  at("evidence-legend").hidden = !rows.some(({ parts }) => parts.length);
  at("evidence-filters").replaceChildren(...shown.filters.map(({ label }) => label));
  const table = at("evidence-table");
  table.replaceChildren(table.caption, part("thead", rowOf(columns.map(headingOf))), part("tbody"));
  find.value = "";
  arrange();
  showAll();
  dialog.showModal();
  dialog.scrollTop = 0;
}

function showAll() {
  at("evidence-all").hidden = false;
  at("evidence-one").hidden = true;
  at("evidence-title").textContent = shown.title;
}

// One image: what is said of it in the captions that the page carries, side by side.
function showOne(image) {
  const table = element("table", "");
  const head = table.createTHead().insertRow();
  for (const name of ["source", "caption"]) head.append(Object.assign(element("th", name), { scope: "col" }));
  for (const [source, captions] of evidence.spoken(image)) {
    const body = table.createTBody();
    for (const caption of captions) body.insertRow().append(element("td", caption));
    body.rows[0].prepend(Object.assign(element("th", source), { scope: "rowgroup", rowSpan: captions.size }));
  }
  at("evidence-said").replaceChildren(...pictured(image), table);
  at("evidence-title").textContent = `What is said of image ${image}, as far as this page holds it`;
  at("evidence-all").hidden = true;
  at("evidence-one").hidden = false;
  shown.from = image;
  dialog.scrollTop = 0;
  at("evidence-back").focus();
}

find.addEventListener("input", () => arrange());
at("evidence-before").addEventListener("click", () => turn(-1));
at("evidence-next").addEventListener("click", () => turn(1));
at("evidence-back").addEventListener("click", () => {
  showAll();
  [...dialog.querySelectorAll("button.image")].find((button) => button.textContent === shown.from)?.focus();
});
