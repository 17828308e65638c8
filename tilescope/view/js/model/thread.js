// Execution of one thread: contents of its registers, and the operands of every value.
import { brief, exact } from "./format.js";
import { spot } from "./run.js";

const cache = new Map();
const MOST = 2000000; // items in the cache
let held = 0;

const UNTYPED = /^(mov|shfl|selp)\b.*\.b32\b/;
const bits = new DataView(new ArrayBuffer(4));

function asFloat(value) {
  bits.setInt32(0, value);
  return bits.getFloat32(0);
}

// A thread's items, at least up to and including a step.
export function threadOf(block, thread, step = Infinity) {
  const key = `${block.run.number}:${block.number}:${thread}`;
  if (!cache.has(key)) {
    if (held > MOST) {
      cache.clear();
      held = 0;
    }
    cache.set(key, new Thread(block, thread));
  }
  const found = cache.get(key);
  held += found.extend(step);
  return found;
}

// An item is one execution of an instruction by this thread:
//   { step, w, values, types, inputs, place, offset, base, lane, decided }
// Inputs are { item, k, by }, texts of constants, or null for values without loaded data. base is
// the input of the address. lane is the source lane of a shuffle, the lanes of a vote, or the input
// that a selection takes. decided lists the branches that led the thread here. by lists the branches
// on which a value depends, as { branch, before }.
class Thread {
  constructor(block, thread) {
    this.block = block;
    this.thread = thread;
    this.items = [];
    this.byStep = new Map();
    this.registers = new Map();
    this.branches = new Map();
    this.memory = new Map();
    this.next = 0; // among the steps of its warp
  }

  // Continues to a step; returns the number of new items.
  extend(until) {
    const { block, thread } = this;
    const steps = block.ofWarp[thread >> 5];
    const before = this.items.length;
    for (; this.next < steps.length && steps[this.next] <= until; this.next++) {
      const e = block.events[steps[this.next]];
      const w = block.watchedOf(e);
      const at = w && block.batch.within(e, block.column, thread);
      if (at) this.add(steps[this.next], e, w, at);
    }
    return this.items.length - before;
  }

  add(step, e, w, at) {
    const { registers, memory } = this;
    const { batch, column } = this.block;
    const item = { step, w, values: [], types: [], inputs: [] };
    item.inputs = w.inputs.map((input) =>
      typeof input === "number" ? (registers.get(input) ?? null) : input,
    );
    if (w.kind === "branch") this.branch(item);
    if (w.base !== undefined) item.base = registers.get(w.base) ?? null;
    item.decided = [];
    for (const n of w.decided ?? [])
      if (this.branches.has(n)) item.decided.push(this.branches.get(n));
    if (w.guard !== undefined) item.decided.push({ item: registers.get(w.guard)?.item, k: 0 });
    if (w.kind === "value" && batch.banks[e] >= 0 && !w.plain)
      item.lane = batch.pool.at(batch.banks[e], ...at, column);
    if (w.kind !== "copy")
      for (let k = 0; k < batch.many[e]; k++) this.value(item, e, k, at);
    if (w.access) {
      item.place = batch.placeOf(e, ...at, column);
      item.offset = batch.offsetOf(e, ...at, column);
      item.length = batch.lengthOf(e, w, ...at, column);
      const key = spot(item.place, item.offset);
      if (w.kind === "load") item.carried = memory.get(key) ?? null;
      else memory.set(key, item);
    }
    if (w.kind !== "branch")
      w.outputs.forEach((number, k) => {
        if (number !== -1) registers.set(number, { item, k });
      });
    this.items.push(item);
    this.byStep.set(step, item);
  }

  // A recorded value as a number in the type of its memory: PTX often moves floats as untyped bits.
  value(item, e, k, at) {
    const { batch, column } = this.block;
    let value = batch.valueOf(e, k, ...at, column);
    let type = batch.typeOf(e, k);
    if (k === 0 && UNTYPED.test(item.w.name) && /[iu]32/.test(type)) {
      const from = item.inputs[0]?.item;
      if (from?.types[item.inputs[0].k] === "f32") [value, type] = [asFloat(value), "f32"];
    }
    item.values.push(value);
    item.types.push(type);
  }

  // After this branch, registers depend on its condition.
  branch(item) {
    const { registers } = this;
    this.branches.set(item.w.number, { item, k: 0 });
    for (const number of item.w.outputs) {
      const old = registers.get(number) ?? { item: null, k: 0 };
      registers.set(number, { ...old, by: { branch: item, before: old.by } });
    }
  }
}

function inputValue(input) {
  if (typeof input === "string")
    return Number.isFinite(Number(input)) ? exact(Number(input)) : input;
  if (!input?.item) return "?";
  return exact(input.item.values[input.k], input.item.types[input.k]);
}

// Operands are shown with few digits, results in full.
function shortValue(input) {
  const value = typeof input === "string" ? Number(input) : input?.item?.values[input.k];
  return Number.isFinite(value) ? brief(value, 8) : inputValue(input);
}

const FORMS = {
  add: (a) => a.join(" + "),
  sub: (a) => a.join(" \u2212 "),
  mul: (a) => a.join(" \u00d7 "),
  div: (a) => a.join(" \u00f7 "),
  fma: (a) => `${a[0]} \u00d7 ${a[1]} + ${a[2]}`,
  mad: (a) => `${a[0]} \u00d7 ${a[1]} + ${a[2]}`,
  neg: (a) => `\u2212${a[0]}`,
};

// Text of an instruction with values, such as "a x b + c".
export function expression(item) {
  const words = item.inputs.map((input) => grouped(shortValue(input)));
  const base = item.w.name.split(".")[0];
  return FORMS[base] ? FORMS[base](words) : `${base}(${words.join(", ")})`;
}

function grouped(text) {
  return text.startsWith("\u2212") ? `(${text})` : text;
}

export function result(item) {
  return exact(item.values[0], item.types[0]);
}
