// A picked element of an output: its thread, and the elements behind it.
import { feeding } from "../model/feeds.js";
import { subscripts } from "../model/run.js";
import { hueOf } from "../model/story.js";
import { plural } from "../model/format.js";

const cache = new Map();

// Selects the thread that wrote an element, and marks the elements behind it.
export function pickOutput(state, array, index) {
  const run = state.now;
  if (!array.drawn || !array.writes_total || index < 0 || index >= array.count) return;
  const owner = Number(run.pool.data(array.owner)[index]);
  const block = Math.floor(owner / run.threads);
  if (owner < 0 || !run.recorded.includes(block)) return;
  state.pick({ block, thread: owner % run.threads });
  state.update({ fed: { place: array.place, index } });
}

// Elements behind an element: a Map by array from index to { order, decides }, and the unfollowed ends.
export function fedBy(run, place, index) {
  const key = `${run.number}:${place}:${index}`;
  if (!cache.has(key)) {
    const { found, ends } = feeding(run, run.byPlace.get(place), index);
    const arrays = new Map();
    const inOrder = [...found].sort((a, b) => a.step - b.step);
    inOrder.forEach((leaf, i) => {
      if (!arrays.has(leaf.place)) arrays.set(leaf.place, new Map());
      arrays.get(leaf.place).set(leaf.index, { order: i + 1, decides: Boolean(leaf.decides), own: leaf.own });
    });
    cache.set(key, { arrays, ends: [...ends] });
  }
  return cache.get(key);
}

// The elements of one array behind the picked one.
export function fedOf(state, array) {
  return state.fed ? (fedBy(state.now, state.fed.place, state.fed.index).arrays.get(array.place) ?? null) : null;
}

export function sayFed(state) {
  const run = state.now;
  const array = run.byPlace.get(state.fed.place);
  const { arrays, ends } = fedBy(run, state.fed.place, state.fed.index);
  const parts = [[array.name + subscripts(array.shape, state.fed.index), hueOf(run, array)], [" is made of "]];
  let decided = 0;
  let first = true;
  const hueRank = ([place]) => run.story.hues[place] ?? 2;
  for (const [place, leaves] of [...arrays].sort((a, b) => hueRank(a) - hueRank(b))) {
    const own = [...leaves.values()].filter((leaf) => !leaf.decides).length;
    decided += leaves.size - own;
    if (!own) continue;
    const from = run.byPlace.get(place);
    parts.push([first ? "" : " and "], [`${plural(own, from.unit)} of `], [from.name, hueOf(run, from)]);
    first = false;
  }
  if (first) parts.push(["no element of an array"]);
  if (decided) parts.push([`; ${plural(decided, "more", "more")} decided on what happened`]);
  parts.push([ends.length ? `. The way ends at ${ends.slice(0, 2).join(" and ")}.` : "."]);
  return parts;
}
