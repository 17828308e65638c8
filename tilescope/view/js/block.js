// One block's part of a run: its steps in order, its phases, and who wrote what when.
import { RELEASE, SHARED, spot } from "./run.js";

// What a register holds: a constant, or something loaded or computed.
const [CONSTANT, DATA] = [1, 2];
const cache = new Map();

export function blockOf(run, number) {
  const key = `${run.number}:${number}`;
  if (!cache.has(key)) cache.set(key, new Block(run, number));
  return cache.get(key);
}

class Block {
  constructor(run, number) {
    this.run = run;
    this.number = number;
    this.batch = run.batches.find((batch) => batch.blocks.includes(number));
    this.column = this.batch.blocks.indexOf(number);
    this.events = [];
    this.phases = [];
    let phase = 0;
    for (let e = 0; e < this.batch.count; e++) {
      if (!this.batch.anyone(e, this.column)) continue;
      this.events.push(e);
      this.phases.push(phase);
      if (this.batch.watched[e] === RELEASE) phase++;
    }
    const last = this.events.findLastIndex((e) => {
      const w = this.watchedOf(e);
      return w && w.kind !== "exit";
    });
    this.phaseCount = (last < 0 ? 0 : this.phases[last]) + 1;
    this.phases = this.phases.map((p) => Math.min(p, this.phaseCount - 1));
    this.writers = null;
    this.phaseStart = [];
    this.phases.forEach((p, step) => (this.phaseStart[p] ??= step));
    this.phaseStart.push(this.events.length);
    this.ofWarp = this.byWarp();
  }

  // For each warp the steps that any of its threads may take part in.
  byWarp() {
    const found = Array.from({ length: this.run.warps }, () => []);
    const { boxes, box } = this.batch;
    const { bx, by } = this.run;
    this.events.forEach((e, step) => {
      const [z0, y0, x0, z1, y1, x1] = boxes.subarray(box[e] * 6, box[e] * 6 + 6);
      const from = x0 + bx * (y0 + by * z0);
      const to = x1 - 1 + bx * (y1 - 1 + by * (z1 - 1));
      for (let warp = from >> 5; warp <= to >> 5; warp++) found[warp].push(step);
    });
    return found;
  }

  // The steps of a phase.
  *stepsOf(phase) {
    for (let step = this.phaseStart[phase]; step < this.phaseStart[phase + 1]; step++) yield step;
  }

  // An event's instruction; null where a barrier opens.
  watchedOf(e) {
    const number = this.batch.watched[e];
    return number === RELEASE ? null : this.run.watched[number];
  }

  watchedAt(step) {
    return this.watchedOf(this.events[step]);
  }

  // The instruction whose line is lit at a step: where a barrier opens, its line stays lit.
  lineAt(step) {
    return this.watchedAt(step) ?? this.watchedAt(Math.max(0, step - 1));
  }

  // Steps a reader stops at: "thread": what this thread does; "warp"; "all": the whole block.
  stops(mode, thread) {
    const warp = Math.floor(thread / 32);
    const found = [];
    const among = mode === "all" ? this.events.keys() : this.ofWarp[warp];
    for (const step of among) {
      const e = this.events[step];
      const w = this.watchedOf(e);
      if (w && w.quiet) continue;
      if (mode === "all" || this.takesPart(e, thread, mode === "warp" ? warp : -1))
        found.push(step);
    }
    return found.length ? found : [0];
  }

  // A step's number as people count: from 1, and without moves from register to register.
  countOf(step) {
    if (!this.counts) {
      let n = 0;
      this.counts = this.events.map((e) => (this.watchedOf(e)?.quiet ? n : ++n));
    }
    return this.counts[step];
  }

  takesPart(e, thread, warp) {
    if (warp < 0) return this.batch.within(e, this.column, thread) !== null;
    for (let t = warp * 32; t < Math.min(this.run.threads, warp * 32 + 32); t++) {
      if (this.batch.within(e, this.column, t)) return true;
    }
    return false;
  }

  // The accesses of one step: who, where, what.
  accesses(step) {
    const e = this.events[step];
    const w = this.watchedOf(e);
    if (!w || !w.access) return [];
    const found = [];
    const { batch, column } = this;
    batch.each(e, column, (thread, z, y, x) => {
      found.push({
        thread,
        place: batch.placeOf(e, z, y, x, column),
        offset: batch.offsetOf(e, z, y, x, column),
        value: (k) => batch.valueOf(e, k, z, y, x, column),
        values: batch.many[e],
      });
    });
    return found;
  }

  // How the banks serve a warp's access to shared memory, as the simulator counted it.
  banks(step, warp) {
    const number = this.batch.banks[this.events[step]];
    const figure = (k) => this.run.pool.at(number, 0, k, warp, this.column);
    return { wavefronts: figure(0), conflicts: figure(1), each: figure(2) };
  }

  // The sectors of a warp's access to global memory, and the bytes it asks for, likewise.
  sectors(step, warp) {
    const number = this.batch.banks[this.events[step]];
    const figure = (k) => (number < 0 ? 0 : this.run.pool.at(number, 0, k, warp, this.column));
    return { sectors: figure(0), asked: figure(1) };
  }

  // Where one of a step's threads accesses memory.
  oneAccess(step) {
    const e = this.events[step];
    const { batch, column } = this;
    let found = null;
    batch.each(e, column, (thread, z, y, x) => {
      found ??= {
        place: batch.placeOf(e, z, y, x, column),
        offset: batch.offsetOf(e, z, y, x, column),
      };
    });
    return found;
  }

  // Every write to shared memory and, by this block, to global arrays: for each element
  // the steps, threads and values, in order.
  history() {
    if (this.writers) return this.writers;
    this.writers = new Map();
    const held = new Map();
    const kept = this.run.storedRegisters;
    const states = (number) => {
      if (!held.has(number)) held.set(number, new Uint8Array(this.run.threads));
      return held.get(number);
    };
    for (let step = 0; step < this.events.length; step++) {
      const e = this.events[step];
      const w = this.watchedOf(e);
      if (!w || (!w.access && w.kind !== "value")) continue;
      const writes = w.kind === "store" || w.kind === "atomic";
      const input = w.inputs[0];
      const from = typeof input === "number" ? states(input) : null;
      const into = w.outputs.filter((number) => kept.has(number)).map(states);
      if (!writes && !into.length) continue;
      this.batch.each(e, this.column, (thread, z, y, x) => {
        const before = from ? from[thread] : CONSTANT;
        const state = w.moves ? before || CONSTANT : DATA;
        for (const output of into) output[thread] = state;
        if (writes)
          this.note(step, e, w, thread, z, y, x, w.kind === "store" && before === CONSTANT);
      });
    }
    return this.writers;
  }

  note(step, e, w, thread, z, y, x, filled) {
    const { batch, column } = this;
    const place = batch.placeOf(e, z, y, x, column);
    if (place < SHARED) return;
    const offset = batch.offsetOf(e, z, y, x, column);
    const values = w.kind === "store" ? w.width / w.size : 1;
    for (let k = 0; k < values; k++) {
      const key = spot(place, offset + k * w.size);
      let known = this.writers.get(key);
      if (!known) this.writers.set(key, (known = []));
      let value = batch.valueOf(e, k, z, y, x, column);
      if (w.kind === "atomic") value = this.combined(w, known, place, offset, e, z, y, x);
      const adds = w.kind === "atomic" && w.operation !== "exch";
      known.push({ step, thread, value, type: batch.typeOf(e, k), filled, k, adds });
    }
  }

  // What an atomic leaves: from the old value if it was asked for, in shared memory from the
  // writes before. Global memory other blocks change as well: null, for "not recorded".
  combined(w, known, place, offset, e, z, y, x) {
    const { batch, column } = this;
    const value = (k) => batch.valueOf(e, k, z, y, x, column);
    const asked = w.outputs[0] >= 0;
    if (!asked && place !== SHARED) return null;
    const before = asked
      ? value(0)
      : known.length
        ? known[known.length - 1].value
        : this.initial(place, offset);
    const made = combined(w, before, value(asked ? 1 : 0));
    return (WRAPPED[batch.typeOf(e, 0)] ?? Number)(made);
  }

  initial(place, offset) {
    const array = this.run.byPlace.get(place);
    if (!array || array.before === undefined) return place === SHARED ? 0 : NaN;
    return Number(this.run.pool.data(array.before)[Math.floor(offset / array.size)]);
  }

  // Who wrote an element last, up to and with a step.
  writer(place, offset, step) {
    const known = this.history().get(spot(place, offset));
    if (!known) return null;
    let low = 0;
    let high = known.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (known[middle].step <= step) low = middle + 1;
      else high = middle;
    }
    return low ? known[low - 1] : null;
  }

  // The writes that made an element what it was after a step, latest first: back to the store that
  // overwrote all before it, atomics on the way. whole: that store is among those recorded. Each with
  // k: which of the store's values it was.
  writersOf(place, offset, step, size = 1) {
    const entries = [];
    let whole = false;
    for (let byte = offset; byte < offset + size; byte++) {
      const known = this.history().get(spot(place, byte)) ?? [];
      for (let i = known.length - 1; i >= 0; i--) {
        if (known[i].step > step) continue;
        entries.push({ entry: known[i], k: known[i].k });
        if (known[i].adds) continue;
        whole = true;
        break;
      }
    }
    return { entries, whole };
  }

  // Threads that never store to global memory.
  silent() {
    if (this.quietThreads) return this.quietThreads;
    const left = new Set(Array.from({ length: this.run.threads }, (_, t) => t));
    let stores = 0;
    for (const e of this.events) {
      const w = this.watchedOf(e);
      if (!w || w.kind === "load" || !w.access) continue;
      this.batch.each(e, this.column, (thread, z, y, x) => {
        if (this.batch.placeOf(e, z, y, x, this.column) < 0) return;
        left.delete(thread);
        stores++;
      });
    }
    this.quietThreads = stores ? left : new Set();
    return this.quietThreads;
  }
}

// What a type has room for.
const WRAPPED = { f32: Math.fround, i32: (n) => n | 0, u32: (n) => n >>> 0 };

function combined(w, before, operand) {
  switch (w.operation) {
    case "add":
      return before + operand;
    case "min":
      return Math.min(before, operand);
    case "max":
      return Math.max(before, operand);
    case "exch":
      return operand;
    case "and":
      return before & operand;
    case "or":
      return before | operand;
    case "xor":
      return before ^ operand;
    default:
      return NaN;
  }
}
