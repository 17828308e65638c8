// Contents of arrays after a number of steps of the picked block.
import { SHARED } from "../model/run.js";

// The last write to an element up to an event, with its value, or null.
export function written(block, place, offset, event) {
  return event < 0 ? null : block.writer(place, offset, event);
}

// Value and write of an element of a shared variable, or null before its first write.
export function sharedValue(block, variable, index, event) {
  const found = written(block, SHARED, variable.start + index * variable.size, event);
  return found ? { value: found.value, write: found } : null;
}

// Initial value of an input, or null if the page has no contents.
export function before(run, array, index) {
  if (array.before === undefined) return null;
  return Number(run.pool.data(array.before)[index]);
}

export function after(run, array, index) {
  if (array.after === undefined) return null;
  return Number(run.pool.data(array.after)[index]);
}

// Present value of an output: the block's writes so far, and those of finished blocks.
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

// Elements that a warp accesses in a beat: a Map from array or variable to { reads, writes }.
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
