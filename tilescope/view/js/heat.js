// How often elements were read or written, and by whom, as shades and as texts.
import { times } from "./format.js";

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
