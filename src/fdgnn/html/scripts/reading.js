// Graphs that people type or paste: SMILES, and lists of edges.

import { ringEdges } from "./chemistry.js";

export class ReadingError extends Error {}

const ORGANIC = /^(Cl|Br|B|C|N|O|P|S|F|I|b|c|n|o|p|s)/;
const BRACKET = /^\[(\d+)?([A-Z][a-z]?|[bcnops]|se|as)(@{0,2}(?:TH\d|AL\d|SP\d)?)(H\d*)?([+-]+\d*)?(?::\d+)?\]/;
const BONDS = new Map([["-", 1], ["=", 2], ["#", 3], [":", 1.5], ["/", 1], ["\\", 1]]);

// Atoms {element, charge, aromatic, hydrogens} and bonds {u, v, order} of a SMILES. Stereo marks are passed over.
export function readSmiles(text) {
  const atoms = [], bonds = [], branches = [], rings = new Map();
  let rest = text.trim(), last = null, order = null;
  const where = () => `after “${text.trim().slice(0, text.trim().length - rest.length)}”`;
  const fail = (why) => { throw new ReadingError(`This SMILES cannot be read: ${why}.`); };
  const bind = (u, v, given) => bonds.push({ u, v, order: given ?? (atoms[u].aromatic && atoms[v].aromatic ? null : 1) });
  const put = (atom) => {
    atoms.push(atom);
    if (last !== null) bind(last, atoms.length - 1, order);
    last = atoms.length - 1;
    order = null;
  };
  while (rest) {
    let found;
    if ((found = ORGANIC.exec(rest))) {
      const symbol = found[0], aromatic = symbol === symbol.toLowerCase();
      put({ element: aromatic ? symbol.toUpperCase() : symbol, charge: 0, aromatic, hydrogens: null });
    } else if ((found = BRACKET.exec(rest))) {
      put(bracketAtom(found));
    } else if ((found = /^(%\d\d|\d)/.exec(rest))) {
      if (last === null) fail(`a ring begins before the first atom`);
      const name = found[0].replace("%", "");
      if (rings.has(name)) {
        const [u, first] = rings.get(name);
        if (u === last) fail(`a ring closes on its own atom ${where()}`);
        bind(u, last, first ?? order);
        rings.delete(name);
      } else rings.set(name, [last, order]);
      order = null;
    } else if ((found = /^[-=#:/\\]/.exec(rest))) order = BONDS.get(found[0]);
    else if ((found = /^\(/.exec(rest))) branches.push(last);
    else if ((found = /^\)/.exec(rest))) {
      if (!branches.length) fail(`a bracket closes that was not opened ${where()}`);
      last = branches.pop();
    } else if ((found = /^\./.exec(rest))) last = null;
    else fail(`“${rest.slice(0, 8)}” ${where()} is not known to this page`);
    rest = rest.slice(found[0].length);
  }
  if (rings.size) fail(`ring ${[...rings.keys()][0]} is not closed`);
  if (branches.length) fail("a bracket is not closed");
  if (!atoms.length) fail("it has no atoms");
  settleAromatic(atoms, bonds);
  return { atoms, bonds };
}

function bracketAtom([, , symbol, , hydrogens, charge]) {
  const aromatic = symbol === symbol.toLowerCase();
  const element = symbol[0].toUpperCase() + symbol.slice(1);
  if (element === "H") throw new ReadingError("Hydrogens as atoms of their own are not read: leave them out.");
  const many = hydrogens ? Number(hydrogens.slice(1) || 1) : 0;
  let sum = 0;
  if (charge) {
    const digits = charge.replace(/[+-]/g, "");
    sum = (charge[0] === "+" ? 1 : -1) * (digits ? Number(digits) : charge.length);
  }
  return { element, charge: sum, aromatic, hydrogens: many };
}

// A bond between two aromatic atoms is aromatic if it lies on a ring, else single.
function settleAromatic(atoms, bonds) {
  const inRing = ringEdges(atoms.length, bonds);
  bonds.forEach((bond, e) => {
    bond.implied = bond.order === null;
    bond.order ??= inRing[e] ? 1.5 : 1;
  });
}

// ---------------------------------------------------------------------- lists of edges

const LINK = /^(.+?)(->|--|-|,|\s)\s*(.+)$/;
const NAME = /^[\p{L}\p{N}_.]+$/u;

// What is told of a text that is no list of edges.
export function noEdges(text) {
  const short = text.trim().length > 40 ? `${text.trim().slice(0, 40)} …` : text.trim();
  return new ReadingError(`“${short}” is no list of edges: this page takes pairs of vertices, such as 0-1 1-2 2-0, and no SMILES.`);
}

// Vertices by name, and edges: `0-1 1-2`, one pair per line or between spaces; `a b` per line as well.
// A name may carry a label: `1:C-2:O`. A single name is a vertex without edges.
export function readEdges(text) {
  const names = new Map(), labels = [], edges = [];
  const vertex = (word) => {
    const [, name, label] = /^([^:]+)(?::(.+))?$/.exec(word.trim()) ?? [null, word.trim(), undefined];
    if (!NAME.test(name)) throw noEdges(text);
    if (!names.has(name)) {
      names.set(name, names.size);
      labels.push(null);
    }
    const v = names.get(name);
    if (label !== undefined) labels[v] = label;
    return v;
  };
  const between = /[^\s,-]-/.test(text) ? /[\n;,]+/ : /[\n;]+/; // with 0-1, 1-2 commas stand between edges
  for (const line of text.split(between).map((each) => each.trim()).filter(Boolean)) {
    const words = line.split(/\s+/);
    const pairs = words.some((word) => /[^-]-[^-]|->|--|,/.test(word)) || words.length !== 2 ? words : [line];
    for (const pair of pairs) {
      const found = LINK.exec(pair);
      if (!found) vertex(pair);
      else edges.push([vertex(found[1]), vertex(found[3])]);
    }
  }
  if (!names.size) throw new ReadingError("There is no edge: write pairs of vertices, such as 0-1 1-2 2-0.");
  if (names.size > 2000) throw new ReadingError("That is more than 2000 vertices, which is too much for this page.");
  return { names: [...names.keys()], labels, edges };
}
