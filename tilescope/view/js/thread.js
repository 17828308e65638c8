// What one thread did: its registers as they were, and how a value came about.
import { brief, exact } from "./format.js";
import { SHARED, spot } from "./run.js";

const cache = new Map();

export function threadOf(block, thread) {
  const key = `${block.run.number}:${block.number}:${thread}`;
  if (!cache.has(key)) {
    if (cache.size > 300) cache.clear();
    cache.set(key, new Thread(block, thread));
  }
  return cache.get(key);
}

// An item is one execution of an instruction by this thread:
//   { step, w, values, types, inputs, place, offset }
// Its inputs are items again, or texts of constants.
class Thread {
  constructor(block, thread) {
    this.block = block;
    this.thread = thread;
    this.items = [];
    this.byStep = new Map();
    const registers = new Map();
    const memory = new Map();
    const { batch, column } = block;
    for (const step of block.ofWarp[thread >> 5]) {
      const e = block.events[step];
      const w = block.watchedOf(e);
      const at = w && batch.within(e, column, thread);
      if (!at) continue;
      const item = { step, w, values: [], types: [], inputs: [] };
      for (let k = 0; k < batch.many[e]; k++) {
        item.values.push(batch.valueOf(e, k, ...at, column));
        item.types.push(batch.typeOf(e, k));
      }
      item.inputs = w.inputs.map((input) =>
        typeof input === "number" ? (registers.get(input) ?? null) : input,
      );
      if (w.access) {
        item.place = batch.placeOf(e, ...at, column);
        item.offset = batch.offsetOf(e, ...at, column);
        const key = spot(item.place, item.offset);
        if (w.kind === "load") item.carried = memory.get(key) ?? null;
        else memory.set(key, item);
      }
      w.outputs.forEach((number, k) => {
        if (number >= 0) registers.set(number, { item, k });
      });
      this.chain(item);
      this.items.push(item);
      this.byStep.set(step, item);
    }
  }

  // The last item up to and with a step.
  at(step) {
    let found = null;
    for (const item of this.items) {
      if (item.step > step) break;
      found = item;
    }
    return found;
  }

  // A value computed from an earlier computed one continues its chain: a running sum, a maximum.
  chain(item) {
    if (item.w.kind !== "value" || item.w.quiet) return;
    item.depth = 1;
    item.previous = null;
    for (const input of item.inputs) {
      const source = origin(input);
      if (source && source.depth && source.depth >= item.depth) {
        item.depth = source.depth + 1;
        item.previous = source;
      }
    }
  }

  // How the running value at a step came about: its chain, oldest first.
  growth(step) {
    let last = null;
    for (const item of this.items) {
      if (item.step > step) break;
      if (item.depth) last = item;
    }
    const found = [];
    for (let item = last; item; item = item.previous) found.unshift(item);
    return found;
  }

  // Elements of global arrays whose values reached this thread: its own loads, and those of
  // others that it got through shared memory. Each with the steps at which it got them.
  sources(step = Infinity) {
    const own = [];
    const through = [];
    for (const item of this.items) {
      if (item.step > step) break;
      if (item.w.kind === "store" || !item.w.access) continue;
      if (item.place >= 0) own.push({ item, place: item.place, offset: item.offset });
      if (item.place !== SHARED || item.w.kind !== "load") continue;
      for (let k = 0; k < item.values.length; k++) {
        const from = this.behind(item, item.offset + k * item.w.size);
        if (from) through.push({ item, place: from.place, offset: from.offset, by: from.thread });
      }
    }
    return { own, through };
  }

  behind(item, offset) {
    const writer = this.block.writer(SHARED, offset, item.step);
    if (!writer) return null;
    const other = threadOf(this.block, writer.thread);
    const store = other.byStep.get(writer.step);
    if (!store) return null;
    const k = Math.max(0, Math.floor((offset - store.offset) / store.w.size));
    const source = origin(store.inputs[k]);
    if (!source || source.w.kind !== "load" || source.place < 0) return null;
    const extra = (store.inputs[k].k ?? 0) * source.w.size;
    return { place: source.place, offset: source.offset + extra, thread: writer.thread };
  }
}

// The item that computed or loaded an input, seen through moves and the thread's own memory.
export function origin(input) {
  let item = input && typeof input === "object" ? input.item : null;
  for (let hops = 0; item && hops < 64; hops++) {
    let next = null;
    if (item.w.moves) next = item.inputs[0];
    else if (item.w.kind === "load" && item.carried) next = item.carried.inputs[0];
    if (!next || typeof next !== "object") {
      return item.w.moves ? null : item;
    }
    item = next.item;
  }
  return item;
}

// Whether a stored value was never loaded nor computed: a constant, such as the zeros that
// fill a tile up.
export function constant(store, k = 0) {
  const input = store.inputs[k];
  return (
    typeof input === "string" || (input !== undefined && input !== null && origin(input) === null)
  );
}

const ASSIGNED = /(?:^|[\s(*])([A-Za-z_]\w*(?:\[[^\]]*\])*)\s*(?:[-+*/|&^]|<<|>>)?=(?!=)/g;
const CALL = /=.*[A-Za-z_]\w*(?:<[^<>]*>)?\(/;

export function labelOf(run, item) {
  return run.element(item.place, item.offset).label;
}

// What to call a computed value: the variable that its source line assigns (last), if it does. Of a
// line that calls functions only the last instruction computes that.
export function nameOf(run, item) {
  const { w } = item;
  const line = run.sourceLine(w);
  const found = [...line.matchAll(ASSIGNED)].pop();
  if (!found) return "value";
  const next = run.watched[w.number + 1];
  const inside =
    CALL.test(line) &&
    next &&
    next.kind === "value" &&
    next.source === w.source &&
    next.file === w.file;
  return inside ? "value" : found[1];
}

export function inputLabel(run, input) {
  if (typeof input === "string") return inputValue(input) || "?";
  if (!input) return "?";
  const item = input.item;
  if (item.w.kind === "load") return labelOf(run, item);
  if (item.w.moves) return item.inputs[0] ? inputLabel(run, item.inputs[0]) : inputValue(input);
  return nameOf(run, item);
}

export function inputValue(input) {
  if (typeof input === "string")
    return Number.isFinite(Number(input)) ? exact(Number(input)) : input;
  if (!input) return "?";
  return exact(input.item.values[input.k], input.item.types[input.k]);
}

// A few digits are enough of an operand; results are shown to the last.
function shortValue(input) {
  const value = typeof input === "string" ? Number(input) : input?.item.values[input.k];
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

// "a x b + c" of an instruction, with names or with values.
export function expression(run, item, values) {
  const words = item.inputs.map((input) =>
    values ? grouped(shortValue(input)) : inputLabel(run, input),
  );
  const base = item.w.name.split(".")[0];
  return FORMS[base] ? FORMS[base](words) : `${base}(${words.join(", ")})`;
}

function grouped(text) {
  return text.startsWith("\u2212") ? `(${text})` : text;
}

export function result(item) {
  return exact(item.values[0], item.types[0]);
}
