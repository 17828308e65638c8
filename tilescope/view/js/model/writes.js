// Writes of a block to shared memory and to global arrays, with their steps and threads.
import { halves } from "./data.js";
import { SHARED, spot } from "./run.js";

// State of a register: a constant, or loaded or computed data.
const [CONSTANT, DATA] = [1, 2];

// A write is { step, order, thread, k, at, size, value, type, filled, adds }; that of a bulk copy is
// { step, order, thread, at, size, from: { place, offset } }. order counts over all blocks.
export class Writes {
  constructor(block) {
    this.block = block;
    this.run = block.run;
    this.unit = block.run.unit;
    this.first = block.run.batches.indexOf(block.batch) * 2 ** 32;
    this.known = new Map();
    this.collect();
  }

  // The writes to the bytes around an offset, in order.
  of(place, offset) {
    return this.known.get(spot(place, offset - (offset % this.unit))) ?? [];
  }

  // The last write up to and with a step, and the value that it left there.
  last(place, offset, step) {
    const known = this.of(place, offset);
    const i = until(known, (write) => write.step <= step);
    return i ? this.seen(known[i - 1], offset) : null;
  }

  // A write with the value that it left in one element.
  seen(write, offset) {
    if (write.from) {
      const array = this.run.byPlace.get(write.from.place);
      if (!array || array.before === undefined || array.writes_total) return write;
      const index = Math.floor((write.from.offset + offset - write.at) / array.size);
      const type = array.type.replace("float", "f").replace("uint", "u").replace("int", "i");
      return { ...write, value: Number(this.run.pool.data(array.before)[index]), type };
    }
    if (write.type !== "f16x2" || write.value === null) return write;
    return { ...write, value: halves(write.value)[(offset - write.at) >> 1] ?? null, type: "f32" };
  }

  collect() {
    const { block } = this;
    const held = new Map();
    const kept = this.run.storedRegisters;
    const states = (number) => {
      if (!held.has(number)) held.set(number, new Uint8Array(this.run.threads));
      return held.get(number);
    };
    for (let step = 0; step < block.events.length; step++) {
      const e = block.events[step];
      const w = block.watchedOf(e);
      if (w?.kind === "copy") this.copies(step, e);
      if (!w || (!w.access && w.kind !== "value")) continue;
      const writes = w.kind === "store" || w.kind === "atomic";
      const input = w.inputs[0];
      const from = typeof input === "number" ? states(input) : null;
      const into = w.outputs.filter((number) => kept.has(number)).map(states);
      if (!writes && !into.length) continue;
      block.batch.each(e, block.column, (thread, z, y, x) => {
        const before = from ? from[thread] : CONSTANT;
        const state = w.moves ? before || CONSTANT : DATA;
        for (const output of into) output[thread] = state;
        if (writes)
          this.note(step, e, w, thread, z, y, x, w.kind === "store" && before === CONSTANT);
      });
    }
  }

  note(step, e, w, thread, z, y, x, filled) {
    const { batch, column } = this.block;
    const place = batch.placeOf(e, z, y, x, column);
    if (place < SHARED) return;
    const offset = batch.offsetOf(e, z, y, x, column);
    const count = w.width / w.size;
    // The last recorded values of an atomic are those after it.
    const first = w.kind === "atomic" ? batch.many[e] - count : 0;
    const phase = w.operation === "phase";
    for (let k = 0; k < count; k++) {
      const value = phase ? null : batch.valueOf(e, first + k, z, y, x, column);
      const adds = w.kind === "atomic" && w.operation !== "exch";
      const type = batch.typeOf(e, first + k);
      const at = offset + k * w.size;
      this.add(place, { step, order: this.first + e, thread, k, at, size: w.size, value, type, filled, adds });
    }
  }

  copies(step, e) {
    let k = 0; // number of the piece
    for (const { thread, size, from, offset, to, into } of this.block.pieces(step))
      this.add(to, {
        step, order: this.first + e, thread, k: k++, at: into, size, value: null, type: "",
        from: { place: from, offset },
      });
  }

  add(place, write) {
    for (let byte = write.at - (write.at % this.unit); byte < write.at + write.size; byte += this.unit) {
      const key = spot(place, byte);
      const known = this.known.get(key);
      if (known) known.push(write);
      else this.known.set(key, [write]);
    }
  }
}

// Length of the prefix of a list for which a predicate holds; binary search.
export function until(list, holds) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(list[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Writes to global arrays by all recorded blocks, in the order of their execution.
export class GlobalWrites {
  constructor(run, blocks) {
    this.run = run;
    this.known = new Map();
    for (const block of blocks)
      for (const [key, list] of block.writes.known) {
        if (key < spot(0, 0)) continue;
        const all = this.known.get(key);
        const own = list.map((write) => ({ write, block }));
        if (all) all.push(...own);
        else this.known.set(key, own);
      }
    for (const list of this.known.values()) list.sort((a, b) => a.write.order - b.write.order);
  }

  of(place, offset) {
    return this.known.get(spot(place, offset - (offset % this.run.unit))) ?? [];
  }

  // Whether blocks without a recording wrote an element.
  missing(array, i) {
    if (!array.drawn) return false;
    const total = Number(this.run.pool.data(array.writes)[i]);
    const at = i * array.size;
    const found = this.of(array.place, at).filter(
      ({ write }) => write.at < at + array.size && at < write.at + write.size,
    );
    return total > found.length;
  }
}
