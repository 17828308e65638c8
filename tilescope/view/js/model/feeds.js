// Backward data flow from a value through registers, shuffles, matrix products, copies, memory, other
// threads and blocks to elements of global arrays. Elements behind indices count. Elements that only
// control a branch are marked as such.
import { blockOf } from "./block.js";
import { LOCAL, SHARED } from "./run.js";
import { threadOf } from "./thread.js";
import { GlobalWrites } from "./writes.js";

const MOST = 500000; // steps to follow, so that a click stays fast
const [LOW, HIGH, BOTH] = [1, 2, 3]; // halves of a register

function globalWrites(run) {
  return (run.globals ??= new GlobalWrites(run, run.recorded.map((number) => blockOf(run, number))));
}

// Elements behind an element of a global array, as far as recorded: { place, offset, by, own, decides,
// step }. by is the reading thread. own: it also wrote the result, and had the value in its step.
// decides: the element only controls a branch. most limits the number of elements.
export function feeding(run, array, i, most = Infinity) {
  const back = new Back(run);
  back.most = most;
  const { found } = back.writers(array.place, i * array.size, array.size, Infinity);
  for (const { write, block, ...part } of found) {
    const item = threadOf(block, write.thread).byStep.get(write.step);
    back.root({ block, who: write.thread, item, k: write.k, write, ...part });
  }
  back.decisions();
  if (back.unseen(array, i)) back.end(unrecorded(run));
  return back;
}

class Back {
  constructor(run) {
    this.run = run;
    this.leaves = new Map();
    this.seen = new Map();
    this.ends = new Set(); // where the data flow is not followed
    this.most = this.until = Infinity;
    this.deciding = false;
    this.later = []; // conditions of branches, to be followed last
    if (run.recursive) this.end("functions that call themselves");
  }

  get found() {
    return [...this.leaves.values()];
  }

  end(where) {
    this.ends.add(where);
  }

  // Data flow into one instruction of a thread: the thread's own steps first, in their order.
  root(first) {
    const { block, who: thread, item } = first;
    this.owner = `${block.number}:${thread}`;
    const mine = [];
    const own = new Set();
    const stack = [first];
    while (stack.length) {
      const node = stack.pop();
      const key = keyOf(node);
      if (own.has(key)) continue;
      own.add(key);
      if (crosses(node.item)) mine.push(node);
      for (const next of this.registers(node))
        if (next.who === thread && !next.decides) stack.push(next);
    }
    mine.sort((a, b) => a.item.step - b.item.step);
    for (const node of mine)
      if (node.item.step <= this.until && this.leaves.size < this.most)
        this.from(node, node.item.step);
    if (this.leaves.size < this.most) this.from(first, item.step);
  }

  decisions() {
    this.deciding = true;
    for (const { node, got } of this.later.splice(0)) this.from(node, got);
  }

  // Data flow behind one item, whose value the owner had in its step `got`.
  from(start, got) {
    const stack = [start];
    while (stack.length) {
      const node = stack.pop();
      if (!this.news(node)) continue;
      if (this.count > MOST) return this.end("this page: there is too much to follow");
      for (const next of this.behind(node, got)) {
        if (next.decides && !this.deciding) this.later.push({ node: next, got });
        else stack.push(next);
      }
    }
    return undefined;
  }

  news(node) {
    let known = this.seen.get(node.block);
    if (!known) this.seen.set(node.block, (known = new Set()));
    const key = keyOf(node);
    if (known.has(key)) return false;
    known.add(key);
    this.count = (this.count ?? 0) + 1;
    return true;
  }

  *behind(node, got) {
    yield* this.registers(node);
    const { block, who, item: at, k, mask, write } = node;
    if (write?.from) {
      yield* this.memory(node, write.from.place, write.from.offset + node.skip, node.bytes, got);
      return;
    }
    const reads = at.w.kind === "load" || (at.w.kind === "atomic" && k <= 0);
    if (!reads || !(at.place >= SHARED)) return;
    const { size, width } = at.w;
    const parts = k < 0 ? Array.from({ length: width / size }, (_, i) => i) : [k];
    for (const part of parts) {
      if (part * size >= at.length) continue; // padding with zeros
      const half = size === 4 && mask !== BOTH;
      const skip = half && mask === HIGH ? 2 : 0;
      yield* this.memory(node, at.place, at.offset + part * size + skip, half ? 2 : size, got);
    }
  }

  // Writes to some bytes before their read, and the bytes that still have their initial contents.
  *memory({ block, who, item }, place, offset, bytes, got) {
    const order = block.writes.first + block.events[item.step];
    const { found, left } = this.writers(place, offset, bytes, order, block);
    for (const { write, block: other, mask, skip, bytes: some } of found) {
      const store = threadOf(other, write.thread, write.step).byStep.get(write.step);
      yield { block: other, who: write.thread, item: store, k: write.k, mask, write, skip, bytes: some };
    }
    if (place < 0) {
      if (left.length && this.run.clusters) this.end("another block of the cluster");
      return;
    }
    for (const at of left) this.leaf(block, who, place, at, got);
  }

  // Writes behind the contents of some bytes before an event: atomics, back to the last overwriting
  // write. Also the bytes that no write overwrote.
  writers(place, offset, bytes, order, block = null) {
    const array = this.run.byPlace.get(place);
    const found = new Map();
    const left = [];
    const { unit } = this.run;
    for (let at = offset - (offset % unit); at < offset + bytes; at += unit) {
      const list = this.written(array, place, at, block);
      let whole = false;
      for (let i = list.length - 1; i >= 0 && !whole; i--) {
        const { write } = list[i];
        if (write.order >= order) continue;
        if (!found.has(write)) found.set(write, { ...list[i], ...overlap(write, offset, bytes) });
        whole = !write.adds;
      }
      if (!whole) left.push(at);
      if (place >= 0 && array?.writes_total && order < Infinity) {
        const index = Math.floor(at / array.size);
        if (index < array.count && this.unseen(array, index))
          this.end(unrecorded(this.run));
      }
    }
    return { found: [...found.values()], left };
  }

  // Whether an unrecorded step may have written an element.
  unseen(array, i) {
    if (array.reads_total) return globalWrites(this.run).missing(array, i);
    const { found, left } = this.writers(array.place, i * array.size, array.size, Infinity);
    return left.length > 0 || !found.length;
  }

  // Writes to a byte, in order. If the kernel never reads the array, the last one suffices.
  written(array, place, at, block) {
    const of = (one) => one.writes.of(place, at).map((write) => ({ write, block: one }));
    if (place < 0) return of(block);
    if (!array?.writes_total) return [];
    if (array.reads_total || !array.drawn) return globalWrites(this.run).of(place, at);
    const owner = this.run.pool.data(array.owner)[Math.floor(at / array.size)];
    const number = Math.floor(owner / this.run.threads);
    return this.run.recorded.includes(number) ? of(blockOf(this.run, number)) : [];
  }

  // Items behind an item's value by registers, of its own thread or of others.
  *registers({ block, who, item: at, k, mask }) {
    const given = (input, other = who, part = BOTH) => {
      const item = input?.item;
      const some = item ? [{ block, who: other, item, k: input.k, mask: part }] : [];
      return [...some, ...this.by(input, block, other)];
    };
    if (at.base) yield* given(at.base);
    for (const input of at.decided)
      for (const next of given(input)) yield { ...next, decides: true };
    if (at.w.ends) this.end(placeOf(at.w));
    const theirs = (lane) =>
      threadOf(block, lane, at.step).byStep.get(at.step)?.inputs ?? [];
    const warp = who & ~31;
    if (at.w.kind === "barrier") yield* this.voted(block, at, given);
    else if (at.w.parts) {
      for (const { operand, halves, lane } of partsOf(this.run, at.w, k, mask, who & 31)) {
        const other = at.w.parts[2] > 1 ? warp + lane : who;
        yield* given(theirs(other)[operand], other, halves);
      }
    } else if (at.w.members) {
      for (let lane = 0; lane < 32; lane++)
        if ((at.lane >>> lane) & 1) yield* given(theirs(warp + lane)[0], warp + lane);
    } else if (at.w.selects) {
      yield* given(at.inputs[at.lane], who, mask);
      for (const next of given(at.inputs[2])) yield { ...next, decides: true };
    } else if (at.lane !== undefined) yield* given(theirs(warp + at.lane)[0], warp + at.lane, mask);
    else if (at.carried && at.place === LOCAL) yield* given(at.carried.inputs[Math.max(0, k)], who, mask);
    else {
      const some = at.w.kind === "store" && k >= 0 ? [at.inputs[k]] : at.inputs;
      const part = at.w.moves || at.w.kind === "store" ? mask : BOTH;
      for (const input of some) yield* given(input, who, part);
    }
  }

  // Branches on which the value of an input depends.
  *by(input, block, who) {
    for (let by = input?.by; by; by = by.before)
      yield { block, who, item: by.branch, k: 0, mask: BOTH, decides: true };
  }

  // A reducing barrier: the operands of all threads.
  *voted(block, at, given) {
    for (const step of block.stepsOf(block.phases[at.step])) {
      const w = block.watchedAt(step);
      if (w?.kind !== "barrier" || !w.outputs.length) continue;
      const threads = [];
      block.batch.each(block.events[step], block.column, (thread) => threads.push(thread));
      for (const thread of threads)
        yield* given(threadOf(block, thread, step).byStep.get(step)?.inputs[0], thread);
    }
  }

  leaf(block, by, place, offset, step) {
    const { array, index } = this.run.element(place, offset);
    if (!array) return;
    const key = `${place}:${index}`;
    const own = `${block.number}:${by}` === this.owner;
    const known = this.leaves.get(key);
    if (!known) this.leaves.set(key, { place, offset, index, by, own, step, decides: this.deciding });
    else if (own && !this.deciding) known.own = true;
  }
}

function keyOf({ who, item, k, mask, skip = 0 }) {
  return (((item.step * 4 + mask) * 16 + skip) * 16384 + k + 1) * 1024 + who;
}

// Whether an item takes its value from outside the thread's registers.
function crosses({ lane, w }) {
  return (lane !== undefined && !w.selects) || w.kind === "load" || w.kind === "atomic" || w.parts?.[2] > 1;
}

// Part of a write that covers some bytes: halves of its value, or bytes of a copy's piece.
function overlap(write, offset, bytes) {
  const from = Math.max(0, offset - write.at);
  const to = Math.min(write.size, offset + bytes - write.at);
  const mask = write.size === 4 ? (from < 2 ? LOW : 0) | (to > 2 ? HIGH : 0) : BOTH;
  return { mask, skip: from, bytes: to - from };
}

function unrecorded(run) {
  const short = run.batches.some((batch) => batch.full);
  return short ? "steps that are not recorded" : "blocks that are not recorded";
}

// Place in the source where the data flow is not followed.
function placeOf(w) {
  return `${w.name}${w.source ? ` in line ${w.source}` : ""}`;
}

// Operands behind a result of an instruction (simulator/analysis/lane_dependence.py).
function partsOf(run, w, k, mask, lane) {
  const [reads, starts, lanes] = w.parts;
  const [entries, bounds] = [run.pool.data(reads), run.pool.data(starts)];
  const found = [];
  const results = k < 0 ? w.outputs.keys() : [k];
  for (const result of results)
    for (const half of [0, 1]) {
      if (!((mask >> half) & 1)) continue;
      const row = (2 * result + half) * lanes + (lanes > 1 ? lane : 0);
      for (let i = bounds[row]; i < bounds[row + 1]; i++) {
        const entry = entries[i];
        found.push({ operand: entry >> 7, halves: (entry >> 5) & 3, lane: entry & 31 });
      }
    }
  return found;
}
