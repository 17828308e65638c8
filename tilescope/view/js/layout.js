// Where arrays stand: a product as people draw it, others in the order in which data flows.
import { feeding } from "./feeds.js";

const SAMPLE = 24; // elements that tell what an element is made of

// Arrays that are drawn: what is only read, what is read and written, what is only written.
export function inOrder(run) {
  const rank = (array) => (array.writes_total ? (array.reads_total ? 1 : 2) : 0);
  return run.arrays.filter((array) => array.drawn).sort((a, b) => rank(a) - rank(b));
}

// The arrays { a, b, c } of a matrix product c = a b, if the run is one: their shapes say so, and so
// does what one element of c was made of. Else null.
export function product(run) {
  const flat = run.arrays.filter((array) => array.drawn && array.shape.length === 2);
  const given = flat.filter((array) => array.reads_total && !array.writes_total);
  for (const c of flat.filter((array) => array.writes_total)) {
    for (const a of given) {
      for (const b of given) {
        const fits =
          a !== b &&
          a.shape[0] === c.shape[0] &&
          a.shape[1] === b.shape[0] &&
          b.shape[1] === c.shape[1];
        if (fits && a.shape[1] > 1 && meet(run, a, b, c)) return { a, b, c };
      }
    }
  }
  return null;
}

// Whether a row of a and a column of b meet in an element of c.
function meet(run, a, b, c) {
  const owner = run.pool.data(c.owner);
  const columns = c.shape[1];
  let i = -1;
  for (let k = 0; k < owner.length; k++) {
    if (owner[k] < 0 || !run.recorded.includes(Math.floor(owner[k] / run.threads))) continue;
    i = k;
    if (Math.floor(k / columns) !== k % columns) break; // a diagonal tells less
  }
  if (i < 0) return false;
  const { found, ends } = feeding(run, c, i, SAMPLE);
  const [row, column] = [Math.floor(i / columns), i % columns];
  const of = (array) => found.filter((leaf) => leaf.place === array.place && !leaf.decides);
  const [left, above] = [of(a), of(b)];
  if (!left.length && !above.length) return ends.size > 0; // only the shapes tell
  return (
    left.length > 1 &&
    above.length > 1 &&
    left.every((leaf) => Math.floor(leaf.index / a.shape[1]) === row) &&
    above.every((leaf) => leaf.index % b.shape[1] === column)
  );
}

// The edge of a cell, in pixels, so that a product fits into a width and on the screen.
export function cellOf({ a, b }, wide, scale) {
  const digits = digitsWide(a, b, scale);
  const high = Math.max(300, window.innerHeight - 310 * scale) / (a.shape[0] + b.shape[0]);
  const across = (wide - 2 * digits - 30 * scale) / (a.shape[1] + b.shape[1]);
  const cell = Math.min(high, across, 44 * scale);
  return cell >= 4 ? Math.floor(cell) : cell;
}

export function digitsWide(a, b, scale) {
  return (9 + 7 * String(Math.max(...a.shape, ...b.shape) - 1).length) * scale;
}
