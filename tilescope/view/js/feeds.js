// What fed what: a value followed back through registers, shuffles, memory and other threads, to the
// elements of global arrays that it came of; their indices count as well, branches do not.
import { blockOf } from "./block.js";
import { SHARED } from "./run.js";
import { threadOf } from "./thread.js";

const MOST = 500000; // steps to look at, so that a click never hangs

// What went into an element of a global array, as far as it was recorded. The elements are
// { place, offset, by, own, step }: read by a thread; own: by the one that wrote the result, which got
// it in that step of its own.
// most: enough of them, for a sample.
export function feeding(run, array, i, most = Infinity) {
  const back = new Back(run);
  back.most = most;
  const from = i * array.size;
  for (const number of run.recorded) {
    const block = blockOf(run, number);
    const { entries } = block.writersOf(array.place, from, block.events.length, array.size);
    for (const { entry, k } of entries) {
      const item = threadOf(block, entry.thread).byStep.get(entry.step);
      back.root(block, entry.thread, item, k);
    }
  }
  return back;
}

// What went into all that one thread wrote to global arrays; if it wrote nothing, what it read; of
// that, what it had got by a step.
export function feedingThread(run, block, thread, until = Infinity) {
  const back = new Back(run);
  back.until = until;
  const { items } = threadOf(block, thread);
  const stores = items.filter((item) => item.place >= 0 && item.w.kind !== "load");
  const roots = stores.length ? stores : items.filter((item) => item.w.kind === "load");
  for (const item of roots) back.root(block, thread, item, -1);
  return back;
}

class Back {
  constructor(run) {
    this.run = run;
    this.leaves = new Map();
    this.seen = new Set();
    this.most = this.until = Infinity;
    this.cut = false; // whether something on the way was not recorded
  }

  get found() {
    return [...this.leaves.values()];
  }

  // What came into one instruction of a thread: that thread's own steps first, in their order.
  root(block, thread, item, k) {
    this.block = block;
    this.owner = thread;
    const mine = [];
    const own = new Set();
    const stack = [[item, k]];
    while (stack.length) {
      const [at, part] = stack.pop();
      const key = at.step * 64 + part + 1;
      if (own.has(key)) continue;
      own.add(key);
      if (at !== item && crosses(at)) mine.push([at, part]);
      for (const input of inputsOf(at, part)) if (input.item) stack.push([input.item, input.k]);
    }
    if (crosses(item)) mine.push([item, k]);
    mine.sort(([a], [b]) => a.step - b.step);
    for (const [at, part] of mine)
      if (at.step <= this.until && this.leaves.size < this.most)
        this.from(thread, at, part, at.step);
    if (!mine.length) this.from(thread, item, k, item.step);
  }

  // Everything behind one item, which its thread had in the owner's step `got`.
  from(thread, item, k, got) {
    const stack = [[thread, item, k]];
    while (stack.length) {
      const [who, at, part] = stack.pop();
      const key = `${this.block.number}:${who}:${at.step}:${part}`;
      if (this.seen.has(key)) continue;
      if (this.seen.size > MOST) {
        this.cut = true;
        return;
      }
      this.seen.add(key);
      for (const next of this.behind(who, at, part, got)) stack.push(next);
    }
  }

  *behind(who, at, k, got) {
    for (const input of inputsOf(at, k)) {
      if (input.item) yield [who, input.item, input.k];
      else if (input.unknown) this.cut = true;
    }
    if (at.lane !== undefined) {
      const other = (who & ~31) + at.lane;
      const input = threadOf(this.block, other, at.step).byStep.get(at.step)?.inputs[0];
      if (input?.item) yield [other, input.item, input.k];
      else if (typeof input !== "string") this.cut = true;
    }
    const reads = at.w.kind === "load" || (at.w.kind === "atomic" && k === 0);
    if (!reads || !(at.place >= SHARED)) return;
    for (const part of at.w.kind === "load" && k < 0 ? at.values.keys() : [Math.max(0, k)]) {
      const offset = at.offset + part * at.w.size;
      const { entries, whole } = this.block.writersOf(at.place, offset, at.step - 1, at.w.size);
      for (const { entry, k: which } of entries) {
        const store = threadOf(this.block, entry.thread, entry.step).byStep.get(entry.step);
        if (store) yield [entry.thread, store, which];
      }
      if (!whole && at.place >= 0) this.leaf(who, at.place, offset, got);
    }
  }

  leaf(by, place, offset, step) {
    const { array, index } = this.run.element(place, offset);
    if (!array) return;
    const key = `${place}:${index}`;
    const own = by === this.owner;
    if (!this.leaves.has(key)) this.leaves.set(key, { place, offset, index, by, own, step });
    else if (own) this.leaves.get(key).own = true;
  }
}

// Where a value comes from beyond the thread's own registers.
function crosses(item) {
  return item.lane !== undefined || item.w.kind === "load" || item.w.kind === "atomic";
}

// What an item's k-th value was made of, in the thread's own registers: { item, k }, or
// { unknown: true } where that was not recorded. -1: of all of its values.
function inputsOf(item, k) {
  const found = [];
  const add = (input) => {
    if (input && typeof input === "object") found.push(input);
    else if (input === null) found.push({ unknown: true });
  };
  if (item.base) add(item.base);
  if (item.source) found.push({ item: item.source, k: -1 });
  else if (item.carried) add(item.carried.inputs[Math.max(0, k)]);
  else if (item.lane === undefined) {
    const some = item.w.kind === "store" && k >= 0 ? [item.inputs[k]] : item.inputs;
    for (const input of some) add(input);
  }
  return found;
}
