
// ---- The captions in the page, as report/page/evidence.py encodes them.
const HUMAN = "human", collator = new Intl.Collator("en");
let evidence = null;

// Compares texts with their numbers as numbers. A minus is a sign unless a word precedes it.
const NUMBERS = /((?<![\p{L}\p{N}])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|\d+(?:\.\d+)?)/u;
function compareNatural(first, second) {
  const [firstParts, secondParts] = [first, second].map((text) => text.split(NUMBERS));
  for (let n = 0; n < Math.min(firstParts.length, secondParts.length); n += 1) {
    const order = n % 2 ? Number(firstParts[n]) - Number(secondParts[n]) : collator.compare(firstParts[n], secondParts[n]);
    if (order) return order;
  }
  return firstParts.length - secondParts.length;
}

// Each caption is stored once, facts by column, and ascending numbers as differences.
function decoded({ images, systems, texts, lists, captions, kinds, by_id: listOf, row_lists: rowLists, totals }) {
  const cumulative = (differences) => { let sum = 0; return differences.map((difference) => (sum += difference)); };
  const [image, source, text] = captions.map(cumulative);
  const starts = [];
  let count = 0;
  for (const kind of kinds) {
    kind.captions = cumulative(kind.captions);
    starts.push(count);
    count += kind.captions.length;
  }
  function value(column, n) {
    if (Array.isArray(column)) return column[n];
    if (column.lists) return lists[column.lists[n]].map((text) => texts[text]);
    return column.words[n].map((word, k) => [word, column.contributions[n][k] / 100]);
  }
  function row(index) {
    const kind = starts.findLastIndex((start) => start <= index);
    const { keys, columns, captions: own } = kinds[kind], n = index - starts[kind];
    const facts = Object.fromEntries(keys.map((key, k) => [key, value(columns[k], n)]));
    return { image: images[image[own[n]]], source: systems[source[own[n]]], caption: texts[text[own[n]]], facts };
  }
  // All captions of an image by source. Human captions also come from the references of other captions.
  function captionsOf(name) {
    const bySource = new Map(), ofImage = new Set();
    const add = (who, caption) => bySource.set(who, (bySource.get(who) ?? new Set()).add(caption));
    image.forEach((index, n) => {
      if (images[index] !== name || !systems[source[n]]) return;
      ofImage.add(n);
      add(systems[source[n]], texts[text[n]]);
    });
    for (const { keys, columns, captions: own } of kinds) {
      for (const column of columns.filter((_, k) => ["references", "people"].includes(keys[k]))) {
        own.forEach((caption, n) => {
          const references = ofImage.has(caption) ? value(column, n) : null;
          if (Array.isArray(references)) references.filter((text) => typeof text === "string").forEach((text) => add(HUMAN, text));
        });
      }
    }
    return [...bySource].sort(([a], [b]) => (a === HUMAN) - (b === HUMAN) || compareNatural(a, b));
  }
  return {
    rows: (id) => (Object.hasOwn(listOf, id) ? cumulative(rowLists[listOf[id]]).map(row) : []),
    total: (id, rows) => (Object.hasOwn(totals, id) ? totals[id] : rows),
    captionsOf,
  };
}

// A fact as text. It may be an object, such as a number before and after a change.
function asText(value) {
  if (Array.isArray(value)) return value.map(asText).join(", ");
  if (!value || typeof value !== "object") return String(value ?? "");
  return Object.entries(value).map(([key, part]) => `${key} ${asText(part)}`).join(", ");
}

const isParts = (value) => Array.isArray(value) && value.every(Array.isArray);

function prepared({ image, source, caption, facts }) {
  const words = (Array.isArray(facts.words) ? facts.words : []).filter((word) => typeof word === "string" && word.trim());
  const parts = isParts(facts.parts) ? facts.parts : [];
  const about = Object.entries(facts).filter(([key, value]) => key !== "words" && !(key === "parts" && isParts(value)))
    .map(([key, value]) => [key, typeof value === "number" ? value : asText(value)]).filter(([, value]) => value !== "");
  const text = [image, source, caption, ...about.map(([key, value]) => `${key} ${value}`)].join("\n").toLowerCase();
  return { image, source, caption, words, parts, about: new Map(about), text };
}
