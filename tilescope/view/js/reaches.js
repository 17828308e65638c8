// Where an element went: what was loaded of it is followed forwards through registers, shuffles,
// shared memory and other threads of the block, to the global elements that it had a part in.
import { blockOf } from "./block.js";
import { spot } from "./run.js";

// The elements that one element of a global array reached in the recorded blocks, as a Map from place
// to a Set of indices.
export function reached(run, array, i) {
  const found = new Map();
  for (const number of run.recorded) {
    const ahead = new Ahead(blockOf(run, number), array, i);
    for (const [place, offset] of ahead.written()) {
      const to = run.byPlace.get(place);
      if (!to || !to.drawn) continue;
      if (!found.has(place)) found.set(place, new Set());
      found.get(place).add(Math.floor(offset / to.size));
    }
  }
  return found;
}

class Ahead {
  constructor(block, array, i) {
    this.block = block;
    this.place = array.place;
    this.low = i * array.size;
    this.high = this.low + array.size;
    this.registers = new Map(); // number: which threads hold something of it
    this.over = false; // whether the block has overwritten the element itself
    this.memory = new Map(); // key: [place, offset], of what holds something of it
  }

  written() {
    const { block } = this;
    for (const e of block.events) {
      const w = block.watchedOf(e);
      if (!w) continue;
      if (w.access) this.access(e, w);
      else if (w.kind === "value") this.value(e, w);
    }
    return [...this.memory.values()].filter(([place]) => place >= 0);
  }

  held(number, thread) {
    return typeof number === "number" && this.registers.get(number)?.[thread] === 1;
  }

  set(number, thread, on) {
    if (number < 0) return;
    let threads = this.registers.get(number);
    if (!threads) {
      if (!on) return;
      this.registers.set(number, (threads = new Uint8Array(this.block.run.threads)));
    }
    threads[thread] = on ? 1 : 0;
  }

  value(e, w) {
    const known = (number) => this.registers.has(number);
    if (!w.inputs.some(known) && !w.outputs.some(known)) return;
    const { batch, column } = this.block;
    const shuffle = batch.banks[e] >= 0;
    const made = [];
    batch.each(e, column, (thread, z, y, x) => {
      const from = shuffle
        ? (thread & ~31) + this.block.run.pool.at(batch.banks[e], z, y, x, column)
        : thread;
      const inputs = shuffle ? w.inputs.slice(0, 1) : w.inputs;
      made.push([thread, inputs.some((number) => this.held(number, from))]);
    });
    for (const [thread, on] of made) for (const number of w.outputs) this.set(number, thread, on);
  }

  access(e, w) {
    const stores = w.kind === "store";
    // An asynchronous copy is a load and a store of one instruction.
    const copies = stores && this.copying === w.ptx;
    if (w.kind === "load") {
      this.copying = w.ptx;
      this.copied = new Set();
    }
    const involved = [...w.inputs, w.base, ...w.outputs];
    const idle = !involved.some((number) => this.registers.has(number));
    if (idle && !this.memory.size && !this.touches(e, w) && !(copies && this.copied.size)) return;
    const { batch, column } = this.block;
    batch.each(e, column, (thread, z, y, x) => {
      const place = batch.placeOf(e, z, y, x, column);
      const offset = batch.offsetOf(e, z, y, x, column);
      const indexed = this.held(w.base, thread);
      for (let k = 0; k * w.size < w.width; k++) {
        const at = offset + k * w.size;
        const key = place === -2 ? `${thread}:${at}` : spot(place, at); // local: a thread's own
        const before = this.memory.has(key) || this.isIt(place, at, w.size);
        const given = stores
          ? this.held(w.inputs[k], thread) || (copies && this.copied.has(thread))
          : w.inputs.some((number) => this.held(number, thread));
        if (w.kind !== "load") {
          if (given || indexed) this.memory.set(key, [place, at]);
          else if (stores || w.operation === "exch") {
            this.memory.delete(key);
            this.over ||= this.isIt(place, at, w.size);
          }
        }
        if (!stores) this.set(w.outputs[k] ?? -1, thread, before || indexed);
        if (w.kind === "load" && before) this.copied.add(thread);
        if (w.kind === "atomic") break;
      }
    });
  }

  isIt(place, offset, size) {
    return !this.over && place === this.place && offset < this.high && this.low < offset + size;
  }

  // A quick look at an event's few distinct addresses, before asking every thread.
  touches(e, w) {
    const { batch } = this.block;
    const place = batch.run.pool.items[batch.place[e]].data;
    if (place.length === 1 && place[0] !== this.place) return false;
    for (const offset of batch.run.pool.items[batch.offset[e]].data)
      if (offset < this.high && this.low < offset + w.width) return true;
    return false;
  }
}
