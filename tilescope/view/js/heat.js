// How often elements were read or written, and by whom, as shades and as texts.
import { times } from "./format.js";
import { spot } from "./run.js";

// Shades are relative to the most accessed element of all runs, so that runs compare.
const shadeCache = new Map();
export function shades(run, array, by) {
  const key = `${run.number}:${array.place}:${by}`;
  if (shadeCache.has(key)) return shadeCache.get(key);
  const data = run.pool.data(array[by]);
  const values = new Float32Array(array.count);
  let most = 0;
  for (let i = 0; i < array.count; i++) {
    if (by === "owner")
      values[i] = data[i] < 0 ? -1 : ((Math.floor(data[i] / run.threads) * 0.382) % 1) * 0.9;
    else if ((values[i] = Number(data[i])) > most) most = values[i];
  }
  const made = { values, most };
  shadeCache.set(key, made);
  if (by !== "owner") {
    const top = run.heatTop?.[by] ?? most;
    for (let i = 0; i < array.count; i++)
      values[i] = values[i] ? 0.12 + 0.88 * (values[i] / Math.max(1, top)) : -1;
  }
  return made;
}

export function prepareShades(runs) {
  for (const by of ["reads", "writes"]) {
    let top = 1;
    for (const run of runs) {
      for (const array of run.arrays) {
        if (array.drawn)
          for (const value of run.pool.data(array[by])) if (value > top) top = Number(value);
      }
    }
    for (const run of runs) run.heatTop = { ...run.heatTop, [by]: top };
  }
}

export function label(run, array, by) {
  const data = run.pool.data(array[by]);
  if (by === "owner")
    return (i) => (data[i] < 0 ? null : String(Math.floor(data[i] / run.threads)));
  return (i) => (data[i] ? times(Number(data[i])) : null);
}

// Where there is nothing to count: what the array held in the end.
export function contents(run, array) {
  if (array.after === undefined) return null;
  const data = run.pool.data(array.after);
  return (i) => Number(data[i]);
}

// What a block has written to an array: { step, index, value }, in order.
function writesTo(block, array) {
  block.changes ??= new Map();
  if (!block.changes.has(array.place)) {
    const found = new Set();
    for (const [key, list] of block.writes.known)
      if (key >= spot(array.place, 0) && key < spot(array.place + 1, 0))
        for (const write of list) if (write.value !== null) found.add(write);
    const all = [...found].map(({ step, at, value }) => ({
      step, index: Math.floor(at / array.size), value,
    }));
    block.changes.set(array.place, all.sort((a, b) => a.step - b.step));
  }
  return block.changes.get(array.place);
}

// The values of an array at a step as shades, from its least to its largest in the run.
export function tones(run, array, block, step) {
  if (array.before === undefined) return null;
  if (!array.tones) {
    const [before, after] = [run.pool.data(array.before), run.pool.data(array.after)];
    let [low, high] = [Infinity, -Infinity];
    for (const data of [before, after])
      for (const value of data) {
        const number = Number(value);
        if (!Number.isFinite(number)) continue;
        if (number < low) low = number;
        if (number > high) high = number;
      }
    const shade = (value) => {
      if (!Number.isFinite(Number(value))) return 1;
      return 0.08 + (high > low ? (0.92 * (Number(value) - low)) / (high - low) : 0);
    };
    array.tones = { shade, before: Float32Array.from(before, shade) };
  }
  const { shade, before } = array.tones;
  const writes = array.writes_total ? writesTo(block, array) : [];
  if (!writes.length || writes[0].step > step) return before;
  const made = before.slice();
  for (const write of writes) {
    if (write.step > step) break;
    made[write.index] = shade(write.value);
  }
  return made;
}
