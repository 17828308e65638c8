// What arrays hold after so many steps of the block that is looked at.
import { SHARED } from "../model/run.js";

// The last write to an element up to an event, with its value; null where there was none.
export function written(block, place, offset, event) {
  return event < 0 ? null : block.writer(place, offset, event);
}

// What stands in an element of a shared variable; undefined where nothing was written.
export function sharedValue(block, variable, index, event) {
  const found = written(block, SHARED, variable.start + index * variable.size, event);
  return found ? { value: found.value, write: found } : null;
}

// What an input held before the run; null where the page has no contents.
export function before(run, array, index) {
  if (array.before === undefined) return null;
  return Number(run.pool.data(array.before)[index]);
}

export function after(run, array, index) {
  if (array.after === undefined) return null;
  return Number(run.pool.data(array.after)[index]);
}

// What an output holds now: this block's writes so far, and those of blocks that are done.
export function outputValue(state, array, index) {
  const run = state.now;
  const own = state.blockNow.writer(array.place, index * array.size, state.event);
  if (own && state.event >= 0) return own.value ?? after(run, array, index);
  const owner = array.drawn ? Number(run.pool.data(array.owner)[index]) : -1;
  const block = owner < 0 ? -1 : Math.floor(owner / run.threads);
  return block !== state.block && state.done.has(block) ? after(run, array, index) : undefined;
}

// Steps of one beat, as the block's events.
export function eventsOf(block, beat) {
  const found = [];
  for (let step = beat.from; step < beat.to; step++) found.push(block.steps[step]);
  return found;
}

// Which elements a warp touched in a beat: Map from "place" or variable to a set of indices.
export function touched(run, block, beat, warp) {
  const found = new Map();
  for (const event of eventsOf(block, beat)) {
    const w = block.watchedAt(event);
    if (!w?.access) continue;
    for (const access of block.accesses(event)) {
      if (warp >= 0 && access.thread >> 5 !== warp) continue; // -1: all warps
      const at = run.element(access.place, access.offset);
      const key = at.array ?? at.variable;
      if (!key) continue;
      if (!found.has(key)) found.set(key, { reads: new Set(), writes: new Set() });
      const into = w.kind === "load" ? found.get(key).reads : found.get(key).writes;
      for (let k = 0; k < Math.max(1, w.width / (key.size || 4)); k++) into.add(at.index + k);
    }
  }
  return found;
}
