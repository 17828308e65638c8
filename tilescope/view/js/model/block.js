// One block of a run: its steps in order, its phases, and its writes.
import { RELEASE } from "./run.js";
import { Writes } from "./writes.js";

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
    this.phaseStart = [];
    this.phases.forEach((p, step) => (this.phaseStart[p] ??= step));
    this.phaseStart.push(this.events.length);
    this.ofWarp = this.byWarp();
    // Steps: events without moves between registers, addresses and branches.
    this.steps = [];
    this.events.forEach((e, i) => {
      if (!this.watchedOf(e)?.quiet) this.steps.push(i);
    });
  }

  // The batch's event of a counted step.
  eventOf(step) {
    return this.events[this.steps[step]];
  }

  // The counted step of one of the block's events: how many were before it.
  stepOf(event) {
    return this.countOf(event) - 1;
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

  // Number of an event's step, counted from 1.
  countOf(step) {
    if (!this.counts) {
      let n = 0;
      this.counts = this.events.map((e) => (this.watchedOf(e)?.quiet ? n : ++n));
    }
    return this.counts[step];
  }

  // The accesses of one event: thread, place, offset and values.
  accesses(step) {
    const e = this.events[step];
    const w = this.watchedOf(e);
    if (!w || !w.access) return [];
    const found = [];
    const { batch, column } = this;
    batch.each(e, column, (thread, z, y, x) => {
      if (!batch.lengthOf(e, w, z, y, x, column)) return;
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

  // Pieces of a bulk copy: thread, source and destination.
  *pieces(step) {
    const e = this.events[step];
    const { batch, column } = this;
    const { pool } = this.run;
    const [into, places, threads, sizes] = [0, 1, 2, 3].map((k) => batch.values[batch.first[e] + k]);
    const { x: count, y: rows } = pool.items[batch.offset[e]];
    const size = pool.at(sizes, 0, 0, 0, 0);
    for (let row = 0; row < rows; row++) {
      const thread = pool.at(threads, 0, row, 0, column);
      if (thread < 0) continue;
      const from = pool.at(batch.place[e], 0, row, 0, column);
      const to = pool.at(places, 0, row, 0, column);
      for (let i = 0; i < count; i++) {
        const offset = pool.at(batch.offset[e], 0, row, i, column);
        if (offset < 0) break;
        yield { thread, size, from, offset, to, into: pool.at(into, 0, row, i, column) };
      }
    }
  }

  // Wavefronts, conflicts and group size of a warp's shared access, as the simulator counted them.
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

  // Place and offset of the first active thread of an event.
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

  // Every write to shared memory and, by this block, to global arrays.
  get writes() {
    return (this.written ??= new Writes(this));
  }

  // The last write to an element up to and including an event.
  writer(place, offset, step) {
    return this.writes.last(place, offset, step);
  }

}
