// Where an element went: what was loaded of it is followed forwards through registers, shuffles,
// products of matrices, copies, memory, other threads and other blocks, to the global elements that it
// had a part in.
import { blockOf } from "./block.js";
import { partsOf } from "./feeds.js";
import { LOCAL, spot } from "./run.js";

// What a register or a place holds of the element: its halves, or that it decided on it.
const [HIGH, BOTH, DECIDED] = [2, 3, 4];

// The elements that one element of a global array reached in the recorded blocks, as a Map from place
// to a Map of indices: whether it went in, or decided alone.
export function reached(run, array, i) {
  const common = new Map(); // what of global memory holds something of it
  const found = new Map();
  for (const batch of run.batches) {
    const all = batch.blocks.map((number) => new Ahead(blockOf(run, number), array, i, common));
    for (let e = 0; e < batch.count; e++) for (const ahead of all) ahead.go(e);
  }
  for (const { place, at, held } of common.values()) {
    const to = run.byPlace.get(place);
    if (!held || !to || !to.drawn) continue;
    if (!found.has(place)) found.set(place, new Map());
    const index = Math.floor(at / to.size);
    const before = found.get(place).get(index);
    found.get(place).set(index, (before ?? 0) | (held & BOTH ? BOTH : DECIDED));
  }
  return found;
}

class Ahead {
  constructor(block, array, i, common) {
    this.block = block;
    this.unit = block.run.unit;
    this.place = array.place;
    this.low = i * array.size;
    this.high = this.low + array.size;
    this.registers = new Map(); // number: what each thread's holds of it
    this.branches = new Map(); // number: whom a branch sent somewhere because of it
    this.common = common;
    this.memory = new Map(); // of shared and local memory
    this.next = 0;
  }

  // What the block does in an event, if it takes part.
  go(e) {
    const { block } = this;
    if (block.events[this.next] !== e) return;
    const step = this.next++;
    const w = block.watchedOf(e);
    if (!w) return;
    if (w.access) this.access(e, w);
    else if (w.kind === "value") this.value(e, w);
    else if (w.kind === "branch") this.branch(e, w);
    else if (w.kind === "copy") this.copy(step);
    else if (w.kind === "barrier" && w.outputs.length) this.vote(step, w);
  }

  held(number, thread) {
    return typeof number === "number" ? (this.registers.get(number)?.[thread] ?? 0) : 0;
  }

  set(number, thread, held) {
    if (number === -1) return;
    let threads = this.registers.get(number);
    if (!threads) {
      if (!held) return;
      this.registers.set(number, (threads = new Uint8Array(this.block.run.threads)));
    }
    threads[thread] = held;
  }

  // Whether the element decided that a thread does something.
  decided(w, thread) {
    for (const n of w.decided ?? []) if (this.branches.get(n)?.[thread]) return DECIDED;
    return this.held(w.guard, thread) ? DECIDED : 0;
  }

  branch(e, w) {
    if (!this.known(w) && !this.branches.has(w.number)) return;
    const { batch, column, run } = this.block;
    let threads = this.branches.get(w.number);
    if (!threads) this.branches.set(w.number, (threads = new Uint8Array(run.threads)));
    batch.each(e, column, (thread) => {
      threads[thread] = this.held(w.inputs[0], thread) || this.decided(w, thread) ? 1 : 0;
      if (threads[thread])
        for (const number of w.outputs) this.set(number, thread, this.held(number, thread) | DECIDED);
    });
  }

  // Whether any thread holds something of it in what an instruction touches.
  known(w) {
    const has = (number) => this.registers.has(number);
    if (has(w.base) || has(w.guard)) return true;
    if (w.inputs.some(has) || w.outputs.some(has)) return true;
    return (w.decided ?? []).some((n) => this.branches.has(n));
  }

  value(e, w) {
    if (!this.known(w)) return;
    const { batch, column, run } = this.block;
    const across = batch.banks[e] >= 0 && !w.plain;
    const made = [];
    batch.each(e, column, (thread, z, y, x) => {
      const warp = thread & ~31;
      const decided = this.decided(w, thread);
      const asked = across ? run.pool.at(batch.banks[e], z, y, x, column) : 0;
      w.outputs.forEach((number, k) => {
        if (number === -1) return;
        let held = decided;
        if (w.parts) held |= this.part(w, k, thread);
        else if (w.members) {
          for (let lane = 0; lane < 32; lane++)
            if ((asked >>> lane) & 1) held |= whole(this.held(w.inputs[0], warp + lane));
        } else if (w.selects) {
          held |= this.held(w.inputs[asked], thread);
          if (this.held(w.inputs[2], thread)) held |= DECIDED;
        } else if (across) held |= this.held(w.inputs[0], warp + asked);
        else
          for (const input of w.inputs) {
            const one = this.held(input, thread);
            held |= w.moves ? one : whole(one);
          }
        made.push([number, thread, held]);
      });
    });
    for (const [number, thread, held] of made) this.set(number, thread, held);
  }

  // What of a result of other lanes' operands, or of halves of its own, holds something of it.
  part(w, k, thread) {
    let held = 0;
    for (const half of [1, HIGH])
      for (const { operand, halves, lane } of partsOf(this.block.run, w, k, half, thread & 31)) {
        const whose = w.parts[2] > 1 ? (thread & ~31) + lane : thread;
        const other = this.held(w.inputs[operand], whose);
        if (other & halves) held |= half;
        held |= other & DECIDED;
      }
    return held;
  }

  // A barrier that reduces hands to all what any brought.
  vote(step, w) {
    const { block } = this;
    let held = 0;
    const threads = new Set();
    for (const other of block.stepsOf(block.phases[step])) {
      const same = block.watchedAt(other);
      if (same?.kind !== "barrier" || !same.outputs.length) continue;
      block.batch.each(block.events[other], block.column, (thread) => {
        held |= whole(this.held(same.inputs[0], thread));
        threads.add(thread);
      });
    }
    for (const thread of threads) this.set(w.outputs[0], thread, held);
  }

  // A copy in bulk, whose pieces need not begin where the element does.
  copy(step) {
    for (const { from, offset, to, into, size } of this.block.pieces(step))
      for (let at = 0; at < size; at += this.unit)
        this.write(to, into + at, 0, this.unit, this.at(from, offset + at, 0, this.unit), true);
  }

  access(e, w) {
    const idle = !this.known(w) && !this.memory.size && !this.common.size;
    if (idle && !this.touches(e, w)) return;
    const { batch, column } = this.block;
    const stores = w.kind === "store";
    batch.each(e, column, (thread, z, y, x) => {
      const place = batch.placeOf(e, z, y, x, column);
      const offset = batch.offsetOf(e, z, y, x, column);
      const decided = this.decided(w, thread);
      const indexed = whole(this.held(w.base, thread)) | decided;
      for (let k = 0; k * w.size < w.width; k++) {
        const at = offset + k * w.size;
        const reads = !stores && k * w.size < batch.lengthOf(e, w, z, y, x, column);
        const before = reads ? this.at(place, at, thread, w.size) : 0;
        let given = 0;
        if (stores) given = this.held(w.inputs[k], thread);
        else for (const input of w.inputs) given |= this.held(input, thread);
        if (w.kind !== "load") {
          const over = stores || w.operation === "exch";
          this.write(place, at, thread, w.size, given | indexed, over);
        }
        if (!stores) this.set(w.outputs[k] ?? -1, thread, before | indexed);
      }
    });
  }

  // What some bytes hold of the element.
  at(place, at, thread, size) {
    let held = 0;
    for (let byte = at - (at % this.unit); byte < at + size; byte += this.unit) {
      const known = this.memoryOf(place).get(this.key(place, byte, thread));
      const own =
        place === this.place && byte < this.high && this.low < byte + this.unit && !known?.over;
      const some = (known?.held ?? 0) | (own ? BOTH : 0);
      const half = byte - at < 2 ? 1 : HIGH;
      held |= size === 4 && this.unit === 2 && some & BOTH ? (some & DECIDED) | half : some;
    }
    return held;
  }

  write(place, at, thread, size, held, over) {
    const memory = this.memoryOf(place);
    for (let byte = at - (at % this.unit); byte < at + size; byte += this.unit) {
      const key = this.key(place, byte, thread);
      const half = byte - at < 2 ? 1 : HIGH;
      const halved = size === 4 && this.unit === 2;
      const some = (halved && !(held & half) ? held & DECIDED : held) | (over ? 0 : this.now(memory, key));
      const own = place === this.place && byte < this.high && this.low < byte + this.unit;
      if (some || (own && over)) memory.set(key, { place, at: byte, held: some, over });
      else memory.delete(key);
    }
  }

  now(memory, key) {
    return memory.get(key)?.held ?? 0;
  }

  memoryOf(place) {
    return place >= 0 ? this.common : this.memory;
  }

  // Local memory is a thread's own.
  key(place, at, thread) {
    return place === LOCAL ? `${thread}:${at}` : spot(place, at);
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

// Any half of a register makes all of what is computed from it.
function whole(held) {
  return held & BOTH ? held | BOTH : held;
}
