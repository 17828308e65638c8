// A recorded run: its events, and the threads that are active in each.
import { NAMES } from "./data.js";
import { coordinates } from "./format.js";

export const RELEASE = -1;
export const SHARED = -1;
export const LOCAL = -2;

export class Run {
  constructor(raw, pool, fields, number) {
    Object.assign(this, raw);
    this.pool = pool;
    this.number = number;
    [this.bx, this.by, this.bz] = this.block;
    this.threads = this.bx * this.by * this.bz;
    this.warps = Math.ceil(this.threads / 32);
    this.batches = raw.batches.map((batch) => new Batch(batch, this, fields));
    this.recorded = this.batches.flatMap((batch) => batch.blocks).sort((a, b) => a - b);
    this.byPlace = new Map(this.arrays.map((array) => [array.place, array]));
    for (const array of this.arrays) {
      if (array.drawn) pool.sum(array.owner);
      const last = array.shape.length ? array.shape[array.shape.length - 1] : 1;
      const range = raw.story.ranges[array.place];
      if (range && array.before !== undefined && array.count <= 4096) range.data = [pool.data(array.before), pool.data(array.after)];
      array.columns = array.shape.length > 1 ? last : 0;
    }
    this.tensor = Object.keys(raw.story.shapes).length > 0;
    this.watched.forEach((w, i) => {
      w.number = i;
      // A selection of one of two constants stands for its predicate.
      w.plain = w.selects === true && w.inputs.slice(0, 2).every((n) => typeof n === "string");
      w.selects = w.selects === true && !w.plain;
      w.quiet = raw.story.quiet[i];
      w.act = raw.story.acts[i];
      w.running = raw.story.running[i];
      w.shape = raw.story.shapes[i]; // rows, columns, depth of a matrix product
      w.access = w.kind === "load" || w.kind === "store" || w.kind === "atomic";
    });
  }

  // Bytes of the smallest element that any instruction accesses.
  get unit() {
    if (this.unitKnown) return this.unitKnown;
    const sizes = this.watched.filter((w) => w.access).map((w) => w.size);
    const arrays = this.arrays.filter((a) => a.reads_total || a.writes_total).map((a) => a.size);
    const shared = this.shared.map((variable) => variable.size);
    const powers = [4, ...sizes, ...arrays, ...shared].map((size) => size & -size);
    return (this.unitKnown = Math.min(...powers));
  }

  // Registers whose values are stored, directly or after moves.
  get storedRegisters() {
    if (this.stored) return this.stored;
    const numbers = (w) => w.inputs.filter((input) => typeof input === "number");
    this.stored = new Set(this.watched.filter((w) => w.kind === "store").flatMap(numbers));
    for (let size = -1; size !== this.stored.size;) {
      size = this.stored.size;
      for (const w of this.watched) {
        if (w.moves && w.outputs.some((o) => this.stored.has(o)))
          for (const n of numbers(w)) this.stored.add(n);
      }
    }
    return this.stored;
  }

  thread(number) {
    return [
      number % this.bx,
      Math.floor(number / this.bx) % this.by,
      Math.floor(number / (this.bx * this.by)),
    ];
  }

  threadNumber(t) {
    return t[0] + this.bx * (t[1] + this.by * t[2]);
  }

  blockAt(number) {
    const [gx, gy] = this.grid;
    return [number % gx, Math.floor(number / gx) % gy, Math.floor(number / (gx * gy))];
  }

  blockNumber(t) {
    return t[0] + this.grid[0] * (t[1] + this.grid[1] * t[2]);
  }

  threadName(number) {
    return `thread ${coordinates(this.thread(number), this.block)}`;
  }

  blockName(number) {
    return `block ${coordinates(this.blockAt(number), this.grid)}`;
  }

  // The command that makes a page with the steps of a block.
  recordingOf(block) {
    const [x, y, z] = this.blockAt(block);
    const at = z ? [x, y, z] : y ? [x, y] : [x];
    return this.command
      ? `${this.command} --block-at ${at.join(",")}`
      : `simulator.launch(..., trace=Trace([${block}]))`;
  }

  // The variable at a byte of a place, and the element in the source's notation.
  element(place, offset) {
    if (place === SHARED) {
      const found = this.shared.find((v) => offset >= v.start && offset < v.start + v.bytes);
      if (!found) return { name: "shared", index: offset, label: `shared memory, byte ${offset}` };
      const index = Math.floor((offset - found.start) / found.size);
      return {
        variable: found,
        name: found.name,
        index,
        label: found.name + subscripts(found.shape, index),
      };
    }
    if (place === LOCAL)
      return { name: "local", index: offset, label: `own memory, byte ${offset}` };
    const array = this.byPlace.get(place);
    if (!array) return { name: "?", index: offset, label: "outside any array" };
    const index = Math.floor(offset / array.size);
    const inside = index >= 0 && index < array.count;
    // A field of a struct, or a byte of a module variable whose elements PTX does not declare.
    const rest = offset - index * array.size;
    const plain = !array.argument && array.size === 1;
    let label = `${array.name}, outside it (element ${index})`;
    if (inside && plain) label = `${array.name}, byte ${offset}`;
    else if (inside)
      label = array.name + subscripts(array.shape, index) + (rest ? ` byte ${rest}` : "");
    return { array, name: array.name, index, label };
  }

  sourceLine(w) {
    return w.file >= 0 ? (this.sources[w.file].lines[w.source - 1] ?? "") : "";
  }
}

// A byte of a place as one number.
export function spot(place, offset) {
  return (place + 3) * 2 ** 32 + offset;
}

export function subscripts(shape, index) {
  if (shape.length < 2) return `[${index}]`;
  const parts = [];
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const size = axis ? shape[axis] : Infinity;
    parts.unshift(size === Infinity ? index : index % size);
    index = Math.floor(index / size);
  }
  return parts.map((part) => `[${part}]`).join("");
}

class Batch {
  constructor(raw, run, fields) {
    this.run = run;
    this.pool = run.pool;
    this.blocks = raw.blocks;
    this.count = raw.count;
    this.recorded = raw.recorded;
    this.full = raw.full;
    const table = this.pool.data(raw.events);
    fields.forEach((name, i) => {
      this[name] = table.subarray(i * raw.count, (i + 1) * raw.count);
    });
    this.values = this.pool.data(raw.values);
    this.boxes = this.pool.data(raw.boxes);
  }

  // Calls visit(thread number, z, y, x) for each thread of a block that takes part in an event;
  // coordinates are those within the event's box.
  each(event, column, visit) {
    const { bx, by } = this.run;
    const [z0, y0, x0, z1, y1, x1] = this.boxes.subarray(
      this.box[event] * 6,
      this.box[event] * 6 + 6,
    );
    const mask = this.mask[event];
    for (let z = z0; z < z1; z++) {
      for (let y = y0; y < y1; y++) {
        for (let x = x0; x < x1; x++) {
          if (mask < 0 || this.pool.at(mask, z - z0, y - y0, x - x0, column)) {
            visit(x + bx * (y + by * z), z - z0, y - y0, x - x0);
          }
        }
      }
    }
  }

  // A thread's coordinates within an event's box, or null if it takes no part.
  within(event, column, thread) {
    const { bx, by } = this.run;
    const b = this.box[event] * 6;
    const x = (thread % bx) - this.boxes[b + 2];
    const y = (Math.floor(thread / bx) % by) - this.boxes[b + 1];
    const z = Math.floor(thread / (bx * by)) - this.boxes[b];
    if (x < 0 || y < 0 || z < 0) return null;
    if (z >= this.boxes[b + 3] - this.boxes[b] || y >= this.boxes[b + 4] - this.boxes[b + 1])
      return null;
    if (x >= this.boxes[b + 5] - this.boxes[b + 2]) return null;
    const mask = this.mask[event];
    return mask < 0 || this.pool.at(mask, z, y, x, column) ? [z, y, x] : null;
  }

  anyone(event, column) {
    const mask = this.mask[event];
    if (mask < 0) return true;
    const item = this.pool.items[mask];
    if (item.b === 1) return true;
    for (let i = column; i < item.data.length; i += item.b) if (item.data[i]) return true;
    return false;
  }

  // The place of an access, if all of its threads have the same; else 0: the accesses have to be examined.
  onlyPlace(event) {
    const { data } = this.pool.items[this.place[event]];
    return data.length === 1 ? data[0] : 0;
  }

  placeOf(event, z, y, x, column) {
    return this.pool.at(this.place[event], z, y, x, column);
  }

  offsetOf(event, z, y, x, column) {
    return this.pool.at(this.offset[event], z, y, x, column);
  }

  valueOf(event, k, z, y, x, column) {
    const number = this.values[this.first[event] + k];
    return number < 0 ? null : this.pool.at(number, z, y, x, column);
  }

  // Bytes that a load reads. An asynchronous copy may read fewer than it writes.
  lengthOf(event, w, z, y, x, column) {
    const given = w.kind === "load" && this.many[event] > w.width / w.size;
    return given ? this.valueOf(event, this.many[event] - 1, z, y, x, column) : w.width;
  }

  typeOf(event, k) {
    return NAMES[this.pool.items[this.values[this.first[event] + k]]?.type];
  }
}
