
// ---- The captions that the page carries, as report/page_evidence.py packs them.
const HUMAN = "human", collator = new Intl.Collator("en");
let evidence = null;

// Letters as letters, numbers within them as numbers; a minus counts where no word goes before it.
const NUMBERS = /((?<![\p{L}\p{N}])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|\d+(?:\.\d+)?)/u;
function inOrder(first, second) {
  const [some, others] = [first, second].map((text) => text.split(NUMBERS));
  for (let n = 0; n < Math.min(some.length, others.length); n += 1) {
    const apart = n % 2 ? Number(some[n]) - Number(others[n]) : collator.compare(some[n], others[n]);
    if (apart) return apart;
  }
  return some.length - others.length;
}

// Every caption once, facts by column, rising numbers as the steps between them.
function decoded({ images, systems, texts, lists, said, kinds, behind, runs, totals }) {
  const summed = (steps) => { let sum = 0; return steps.map((step) => (sum += step)); };
  const [image, source, text] = said.map(summed);
  const starts = [];
  let count = 0;
  for (const kind of kinds) {
    kind.said = summed(kind.said);
    starts.push(count);
    count += kind.said.length;
  }
  function value(column, n) {
    if (Array.isArray(column)) return column[n];
    if (column.lists) return lists[column.lists[n]].map((one) => texts[one]);
    return column.words[n].map((word, k) => [word, column.adds[n][k] / 100]);
  }
  function row(place) {
    const which = starts.findLastIndex((start) => start <= place);
    const { keys, columns, said } = kinds[which], n = place - starts[which];
    const facts = Object.fromEntries(keys.map((key, k) => [key, value(columns[k], n)]));
    return { image: images[image[said[n]]], source: systems[source[said[n]]], caption: texts[text[said[n]]], facts };
  }
  // All that is said of an image, by source; what people said also stands with captions that are held against it.
  function spoken(name) {
    const found = new Map(), mine = new Set();
    const add = (who, what) => found.set(who, (found.get(who) ?? new Set()).add(what));
    image.forEach((one, n) => {
      if (images[one] !== name || !systems[source[n]]) return;
      mine.add(n);
      add(systems[source[n]], texts[text[n]]);
    });
    for (const { keys, columns, said } of kinds) {
      for (const column of columns.filter((_, k) => ["references", "people"].includes(keys[k]))) {
        said.forEach((one, n) => {
          const what = mine.has(one) ? value(column, n) : null;
          if (Array.isArray(what)) what.filter((text) => typeof text === "string").forEach((text) => add(HUMAN, text));
        });
      }
    }
    return [...found].sort(([a], [b]) => (a === HUMAN) - (b === HUMAN) || inOrder(a, b));
  }
  return {
    rows: (id) => (Object.hasOwn(behind, id) ? summed(runs[behind[id]]).map(row) : []),
    total: (id, rows) => (Object.hasOwn(totals, id) ? totals[id] : rows),
    spoken,
  };
}

// A fact may have parts of its own, such as a number before and after a change.
function told(value) {
  if (Array.isArray(value)) return value.map(told).join(", ");
  if (!value || typeof value !== "object") return String(value ?? "");
  return Object.entries(value).map(([key, part]) => `${key} ${told(part)}`).join(", ");
}

const isParts = (value) => Array.isArray(value) && value.every(Array.isArray);

function prepared({ image, source, caption, facts }) {
  const words = (Array.isArray(facts.words) ? facts.words : []).filter((word) => typeof word === "string" && word.trim());
  const parts = isParts(facts.parts) ? facts.parts : [];
  const about = Object.entries(facts).filter(([key, value]) => key !== "words" && !(key === "parts" && isParts(value)))
    .map(([key, value]) => [key, typeof value === "number" ? value : told(value)]).filter(([, value]) => value !== "");
  const text = [image, source, caption, ...about.map(([key, value]) => `${key} ${value}`)].join("\n").toLowerCase();
  return { image, source, caption, words, parts, about: new Map(about), text };
}
