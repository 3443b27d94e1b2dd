
// ---- The captions behind a number, as a table with search, filters, sorting and pages.
const PAGE_SIZE = 25, MAX_CHOICES = 12, MAX_FACTS = 12, LONG_TEXT = 60;
const at = (id) => document.getElementById(id);
const search = at("evidence-search");
let view = { rows: [], columns: [], filters: [], sort: null, page: 0 };

// A column for each fact, the number itself first. Long facts, and rare ones where there are many, share the last column.
function createColumns(rows, title) {
  const totals = new Map();
  for (const { about } of rows) {
    for (const [key, value] of about) {
      const previous = totals.get(key) ?? { count: 0, letters: 0 };
      totals.set(key, { count: previous.count + 1, letters: previous.letters + String(value).length });
    }
  }
  const short = [...totals].filter(([, { count, letters }]) => letters <= LONG_TEXT * count);
  const kept = new Set([...short].sort(([, a], [, b]) => b.count - a.count).slice(0, MAX_FACTS).map(([key]) => key));
  const facts = short.filter(([key]) => kept.has(key)).map(([key]) => ({ name: key, fact: true, value: (row) => row.about.get(key) }));
  const own = title.split(/ · | = /), isOwn = ({ name }) => own.includes(name);
  facts.sort((a, b) => isOwn(b) - isOwn(a));
  const rest = [...totals.keys()].filter((key) => !kept.has(key));
  // The source has a column if it may differ from the system of the number.
  const several = rows.some(({ source }) => source !== rows[0].source || source === HUMAN);
  return [
    ...(rows.some(({ image }) => Object.hasOwn(thumbnails, image)) ? [{ name: "thumbnail", cell: ({ image }) => thumbnailOf(image) }] : []),
    { name: "image", value: ({ image }) => image, cell: (row) => [row.source ? nameOf(row.image) : row.image] },
    ...(several ? [{ name: "source", fact: true, value: ({ source }) => source || undefined }] : []),
    { name: "caption", value: ({ caption }) => caption, cell: (row) => [captionLine(row.caption, row.words), ...(row.parts.length ? [contributionLine(row.parts)] : [])] },
    ...facts,
    ...(rest.length ? [{ name: "more", cell: (row) => otherFacts(row, rest) }] : []),
  ];
}

function nameOf(image) {
  const button = element("button", image, "image");
  button.type = "button";
  button.title = "all captions of this image";
  button.addEventListener("click", () => showImage(image));
  return button;
}

function otherFacts({ about }, keys) {
  const present = keys.filter((key) => about.has(key));
  if (!present.length) return [];
  const details = document.createElement("details");
  details.append(element("summary", present.join(", ")), ...present.map((key) => element("p", present.length > 1 ? `${key}: ${about.get(key)}` : about.get(key))));
  return [details];
}

// Numbers as numbers, before texts. Missing values come last in both directions.
function sorted(rows, { value }, down) {
  const order = (a, b) => typeof a === "number" && typeof b === "number" ? a - b
    : typeof a === typeof b ? compareNatural(a, b) : typeof a === "number" ? -1 : 1;
  return rows.map((row) => [value(row), row])
    .sort(([a], [b]) => a === undefined || b === undefined ? (a === undefined) - (b === undefined) : down ? order(b, a) : order(a, b))
    .map(([, row]) => row);
}

function createFilters(rows, columns) {
  return columns.filter(({ fact }) => fact).flatMap((column) => {
    const counts = new Map();
    for (const value of rows.map(column.value)) if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
    if (counts.size < 2 || counts.size > MAX_CHOICES || counts.size >= rows.length) return [];
    const values = sorted([...counts.keys()], { value: (item) => item }, false);
    const select = document.createElement("select");
    select.append(new Option("all", ""), ...values.map((value, n) => new Option(`${value} (${counts.get(value)})`, n)));
    select.addEventListener("change", () => update());
    const label = element("label", `${column.name} `);
    label.append(select);
    return [{ label, matches: (row) => select.value === "" || column.value(row) === values[select.value] }];
  });
}

// With explicit roles: a table laid out as cards loses its role in some browsers.
function cellOf(tag, role, label, ...content) {
  const cell = document.createElement(tag);
  cell.setAttribute("role", role);
  if (label) cell.dataset.label = label; // shown before the content on cards
  cell.append(...content);
  return cell;
}

function rowOf(cells) {
  const row = document.createElement("tr");
  row.setAttribute("role", "row");
  row.append(...cells);
  return row;
}

function tableSection(tag, ...rows) {
  const group = document.createElement(tag);
  group.setAttribute("role", "rowgroup");
  group.append(...rows);
  return group;
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
    const { sort } = view;
    view.sort = { column, down: sort?.column === column && !sort.down };
    update();
  });
  cell.append(button);
  column.heading = cell;
  return cell;
}

function bodyCell(column, row) {
  const value = column.value?.(row), isHeader = column.name === "image" && !column.fact;
  const content = column.cell ? column.cell(row) : value === undefined ? [] : [String(value)];
  const cell = cellOf(isHeader ? "th" : "td", isHeader ? "rowheader" : "cell", column.name, ...content);
  if (isHeader) cell.scope = "row";
  cell.classList.add(column.fact ? "fact" : `the-${column.name}`);
  cell.classList.toggle("empty", !content.length);
  cell.classList.toggle("n", Boolean(column.fact) && typeof value === "number");
  return cell;
}

// Shows a page of the captions that match the search and the filters, in the chosen order.
function update(page = 0) {
  const query = search.value.trim().toLowerCase(), { rows, columns, filters, sort } = view;
  const matching = rows.filter((row) => row.text.includes(query) && filters.every(({ matches }) => matches(row)));
  const ordered = sort ? sorted(matching, sort.column, sort.down) : matching;
  const last = Math.max(0, Math.ceil(ordered.length / PAGE_SIZE) - 1), first = Math.min(page, last) * PAGE_SIZE;
  const pageRows = ordered.slice(first, first + PAGE_SIZE);
  view.page = Math.min(page, last);
  for (const column of columns) column.heading?.setAttribute("aria-sort", sort?.column !== column ? "none" : sort.down ? "descending" : "ascending");
  at("evidence-table").tBodies[0].replaceChildren(...pageRows.map((row) => rowOf(columns.map((column) => bodyCell(column, row)))));
  const suffix = matching.length === rows.length ? "" : ` found (${rows.length} in all)`;
  at("evidence-position").textContent = matching.length ? `${first + 1}–${first + pageRows.length} of ${matching.length}${suffix}` : `0${suffix}`;
  // Not disabled: a disabled button loses the focus of readers who use keys.
  at("evidence-previous").setAttribute("aria-disabled", view.page === 0);
  at("evidence-next").setAttribute("aria-disabled", view.page === last);
  for (const name of ["previous", "next"]) at(`evidence-${name}`).hidden = last === 0;
}

function turnPage(step) {
  const page = view.page + step, previous = view.page;
  update(Math.max(0, page));
  if (view.page !== previous) at("evidence-table").scrollIntoView({ block: "start" });
}

function titleOf(button) {
  if (button.closest(".verdict")) return button.closest("li").firstChild.textContent.trim();
  const cell = button.closest("td"), heading = cell.closest("table").tHead.rows[0].cells[cell.cellIndex];
  return [button.closest("tr").dataset.what, heading.textContent].filter(Boolean).join(" · ") + " = " + button.textContent;
}

async function open(button) {
  if (!(await loading)) return;
  const title = titleOf(button), rows = evidence.rows(button.dataset.id).map(prepared), columns = createColumns(rows, title);
  const total = evidence.total(button.dataset.id, rows.length), count = (number) => number.toLocaleString("en");
  view = { rows, columns, filters: createFilters(rows, columns), sort: null, page: 0, title };
  at("evidence-count").textContent = rows.length < total ? `${count(rows.length)} of ${count(total)} captions, evenly sampled.` : `${count(total)} captions`;
  at("evidence-more").hidden = rows.length === total;
  at("evidence-legend").hidden = !rows.some(({ parts }) => parts.length);
  at("evidence-filters").replaceChildren(...view.filters.map(({ label }) => label));
  const table = at("evidence-table");
  table.replaceChildren(table.caption, tableSection("thead", rowOf(columns.map(headingOf))), tableSection("tbody"));
  search.value = "";
  update();
  showAll();
  dialog.showModal();
  dialog.scrollTop = 0;
}

function showAll() {
  at("evidence-all").hidden = false;
  at("evidence-one").hidden = true;
  at("evidence-title").textContent = view.title;
}

// One image: its captions in the page, side by side.
function showImage(image) {
  const table = element("table", "");
  const head = table.createTHead().insertRow();
  for (const name of ["source", "caption"]) head.append(Object.assign(element("th", name), { scope: "col" }));
  for (const [source, captions] of evidence.captionsOf(image)) {
    const body = table.createTBody();
    for (const caption of captions) body.insertRow().append(element("td", caption));
    body.rows[0].prepend(Object.assign(element("th", source), { scope: "rowgroup", rowSpan: captions.size }));
  }
  at("image-captions").replaceChildren(...thumbnailOf(image), table);
  at("evidence-title").textContent = `Captions of image ${image} in this page`;
  at("evidence-all").hidden = true;
  at("evidence-one").hidden = false;
  view.from = image;
  dialog.scrollTop = 0;
  at("evidence-back").focus();
}

search.addEventListener("input", () => update());
at("evidence-previous").addEventListener("click", () => turnPage(-1));
at("evidence-next").addEventListener("click", () => turnPage(1));
at("evidence-back").addEventListener("click", () => {
  showAll();
  [...dialog.querySelectorAll("button.image")].find((button) => button.textContent === view.from)?.focus();
});
