// One-dimensional arrays as strips under lenses: the input, the block's copy in shared memory, the
// picked thread's operands, the output. With atomics: lines to the elements that they update.
import { Lens } from "../draw/lens.js";
import { colours } from "../draw/colours.js";
import { drawBars, topOf } from "../draw/sheet.js";
import { full, inCell } from "../draw/numbers.js";
import { madeBy, valueOf } from "../draw/threadpanel.js";
import { capital, count, plural } from "../model/format.js";
import { MAKE, STORE, hueAt, hueOf, hueOfVariable } from "../model/story.js";
import { ofOneValue, termsOf } from "../model/sums.js";
import { threadOf } from "../model/thread.js";
import { fedOf, pickOutput } from "./pick.js";
import { sayElement } from "./say.js";
import { before, outputValue, sharedValue, touched } from "./values.js";

const HIGH = 44;
const MOST_TERMS = 9;

export class Strips {
  constructor(state) {
    this.state = state;
    this.own = true;
    this.lens = new Lens("Arrays as strips, and the picked thread's operands");
    this.root = this.lens.root;
  }

  draw(room) {
    const { state, lens } = this;
    const run = state.now;
    const wide = Math.min(980, room);
    this.narrow = wide < 560;
    this.wide = wide;
    const inputs = run.story.inputs.map((place) => run.byPlace.get(place)).filter((a) => a?.drawn).slice(0, 3);
    const outputs = run.story.outputs.map((place) => run.byPlace.get(place)).filter((a) => a?.drawn).slice(0, 2);
    const shared = run.shared.filter((v, i) => run.story.acts && state.story && (run.story.sources[i] >= 0 || inputs.length === 0 || run.story.layout === "atomics")).slice(0, 1);
    this.touched = state.current ? touched(run, state.blockNow, state.current, state.warp) : new Map();
    this.terms = ofOneValue(termsOf(state.blockNow, state.thread, threadOf(state.blockNow, state.thread).items), state.pos);
    const middle = this.terms.length ? 150 : 118;
    const high = inputs.length * 96 + shared.length * 110 + middle + outputs.length * 96 + 20;
    lens.begin(wide, high, room);
    let y = 4;
    let lensFrom = null;
    for (const array of inputs) {
      lensFrom = this.strip(array, y, false);
      y += 96;
    }
    for (const variable of shared) {
      const above = lensFrom;
      if (above) this.updates(inputs[0], variable, y); // beneath all, but for the lens
      lensFrom = this.tile(variable, y, lensFrom);
      y += 110;
    }
    const from = this.thread(y, lensFrom);
    y += middle;
    for (const array of outputs) {
      this.strip(array, y, true, from);
      y += 96;
    }
    lens.end();
  }

  // A global array over the whole width, the block's part framed.
  strip(array, y, written, from = null) {
    const { lens, state, wide } = this;
    const run = state.now;
    const hue = hueOf(run, array);
    const n = array.count;
    const range = run.story.ranges[array.place];
    const window = state.story.whole(array.place, written ? 1 : 0);
    const [lo, hi] = window ? flat(window, array) : [0, 0];
    lens.name(0, y + 14, array.name, this.narrow ? `${array.unit === "byte" ? plural(n, "byte") : count(n)}, ${array.space}` : `${plural(n, array.unit)} in ${array.space} memory${written ? "" : "; height is the value"}`, hue);
    const top = y + 24;
    const c = colours();
    const used = this.touched.get(array);
    const fed = fedOf(state, array);
    const valueAt = (i) => (written ? outputValue(state, array, i) : before(run, array, i));
    const each = Math.max(1, Math.ceil(n / (wide * 2))); // elements a bar: the largest of them
    const bars = Math.ceil(n / each);
    const fill = written ? `${hue}0` : "page";
    if (window) lens.rect((lo / n) * wide, top, ((hi - lo) / n) * wide, HIGH, fill);
    drawBars(lens.pen, {
      x: 0, y: top, wide, high: HIGH, count: bars, top: topOf(range),
      value: (k) => largest(valueAt, k * each, Math.min(n, (k + 1) * each)),
      colour: (k) => {
        const i = k * each;
        const now = fed ?? (used && (written ? used.writes : used.reads));
        if (now?.has(i)) return c[`${hue}2`];
        return i >= lo && i < hi ? c[`${hue}1`] : c.hatch;
      },
    });
    lens.border(0.5, top + 0.5, wide - 1, HIGH - 1, "line");
    if (window) lens.ring((lo / n) * wide - 1, top - 3, Math.max(3, ((hi - lo) / n) * wide + 2), HIGH + 6, `${hue}2`);
    this.blocks(array, top, written);
    if (from) {
      const index = this.madeIndex(array);
      if (index >= 0) {
        const x = ((index + 0.5) / n) * wide;
        lens.arrow(`M${from.x} ${from.y}C${from.x} ${top - 20} ${x} ${top - 34} ${x} ${top - 4}`, hue, state.current?.kind === STORE ? 3 : 1.5);
      }
    }
    lens.spot({
      x: 0, y: top, w: wide, h: HIGH,
      say: (x) => sayElement(state, array, Math.floor((x / wide) * n)),
      pick: (x) => this.pick(array, Math.floor((x / wide) * n)),
      grid: { rows: 1, cols: n, cell: wide / n, tall: HIGH, name: array.name },
    });
    return { lo: (lo / n) * wide, hi: (hi / n) * wide, y: top + HIGH + 18 };
  }

  // Borders and numbers of the blocks, if blocks take equal parts in turn.
  blocks(array, top, written) {
    const { lens, state, wide } = this;
    const run = state.now;
    if (!written && state.story.whole(array.place, 0) === null) return;
    const n = array.count;
    const size = run.threads;
    const parts = Math.ceil(n / size);
    if (parts !== run.grid[0] || parts > 24) return;
    const inTurn = run.story.blocks.every((one) => one.windows.filter((w) => w[1] === array.place && w[2]).every((w) => w[4] >= one.block * size && w[6] <= (one.block + 1) * size));
    if (written && !inTurn) return;
    for (let b = 0; b < parts; b++) {
      const [x0, x1] = [((b * size) / n) * wide, (Math.min(n, (b + 1) * size) / n) * wide];
      if (b) lens.rect(x0 - 0.5, top - 2, 1, HIGH + 4, "faint");
      if (x1 - x0 > 46) lens.text((x0 + x1) / 2, top + HIGH + 15, `block ${b}`, { size: 11.5, anchor: "middle", weight: b === state.block ? 700 : 400, fill: b === state.block ? "ink" : "mute" });
    }
  }

  // The block's copy, each element once.
  tile(variable, y, from) {
    const { lens, state, wide } = this;
    const run = state.now;
    const hue = hueOfVariable(run, variable);
    const n = Math.floor(variable.bytes / variable.size);
    const top = y + 26;
    if (from) lens.beneath(`M${from.lo} ${from.y - 14}L0 ${top - 6}H${wide}L${from.hi} ${from.y - 14}z`, "fill: var(--sunk)");
    lens.name(0, y + 16, variable.name, this.narrow ? `${count(n)}, shared` : `${plural(n, "element")} in shared memory of ${run.blockName(state.block)}`, hue);
    lens.rect(0, top - 6, wide, HIGH + 12, "sunk");
    const c = colours();
    const each = wide / n;
    const used = this.touched.get(variable);
    const source = run.story.sources[run.shared.indexOf(variable)];
    const values = Array.from({ length: Math.min(n, 4096) }, (_, i) => sharedValue(state.blockNow, variable, i, state.event));
    const range = source >= 0 ? run.story.ranges[source] : null;
    const most = range ? topOf(range) : Math.max(1, ...values.map((v) => Math.abs(v?.value ?? 0)));
    values.forEach((found, i) => {
      lens.rect(i * each, top, Math.max(0.6, each - (each > 3 ? 0.7 : 0)), HIGH, found ? `${hue}0` : "page");
    });
    drawBars(lens.pen, {
      x: 0, y: top, wide, high: HIGH, count: values.length, top: most,
      value: (i) => values[i]?.value,
      colour: (i) => (used?.writes.has(i) || used?.reads.has(i) ? c[`${hue}2`] : c[`${hue}1`]),
    });
    lens.border(0.5, top + 0.5, wide - 1, HIGH - 1, "line");
    const own = this.operandIndices(variable);
    const found = own.length ? [Math.min(...own), Math.max(...own) + 1] : null;
    if (found) lens.ring(found[0] * each - 1, top - 4, Math.max(3, (found[1] - found[0]) * each + 2), HIGH + 8);
    lens.spot({ x: 0, y: top, w: wide, h: HIGH, say: (x) => sayElement(state, variable, Math.floor(x / each)), grid: { rows: 1, cols: n, cell: each, tall: HIGH, name: variable.name } });
    return found ? { lo: found[0] * each, hi: found[1] * each, y: top + HIGH + 19, hue: "c" } : from;
  }

  // Lines from the element that each thread of the warp loads to the one that it updates.
  updates(array, variable, y) {
    const { lens, state, wide } = this;
    const run = state.now;
    if (run.story.layout !== "atomics" || !state.current || !array) return;
    const loaded = new Map();
    const total = variable.bytes / variable.size;
    for (let step = state.current.from; step < state.current.to; step++) {
      const event = state.blockNow.steps[step];
      for (const access of state.blockNow.accesses(event)) {
        if (access.thread >> 5 !== state.warp) continue;
        const at = run.element(access.place, access.offset);
        if (at.array === array) loaded.set(access.thread, at.index);
        if (at.variable !== variable || !loaded.has(access.thread)) continue;
        const x = ((loaded.get(access.thread) + 0.5) / array.count) * wide;
        const to = ((at.index + 0.5) / total) * wide;
        const own = access.thread === state.thread;
        lens.beneath(`M${x} ${y - 26}L${to} ${y + 22}`, `fill: none; stroke: var(--${own ? "ink" : `${hueOf(run, array)}2`}); stroke-width: ${own ? 2.5 : 0.8}`);
      }
    }
  }

  // Elements of a variable, or of a global array, that the picked thread's terms come from.
  operandIndices(item) {
    const run = this.state.now;
    return this.terms.slice(0, 64).flatMap((term) => term.operands).flatMap((o) => {
      if (!o?.item?.w.access) return [];
      const at = run.element(o.item.place, o.item.offset);
      return (at.variable ?? at.array) === item ? [at.index] : [];
    });
  }

  // The picked thread: its operands side by side, and their result.
  thread(y, from) {
    const { lens, state, wide, narrow, terms } = this;
    const run = state.now;
    const done = terms.filter((term) => term.step < state.pos).length;
    const per = Math.max(1, ...terms.map((term) => Math.min(2, term.operands.length)));
    const most = Math.min(MOST_TERMS, Math.max(2, Math.floor((wide - (narrow ? 92 : 260)) / ((narrow ? 33 : 44) * per))));
    const firstShown = Math.max(0, Math.min(done - Math.ceil(most / 2), terms.length - most));
    const some = terms.slice(firstShown, firstShown + most);
    const cells = some.flatMap((term, k) => term.operands.slice(0, 2).map((operand, i) => ({ operand, term, i, at: firstShown + k })));
    const side = Math.min(64, narrow ? (wide - 92) / Math.max(2, cells.length) : (wide - 260) / Math.max(2, cells.length + 1.3));
    const tall = side * 0.82;
    const makes = madeBy(run, state.block, state.thread);
    const left = narrow ? 0 : Math.max(130, 7 * makes.length + 10);
    const middle = from ? (from.lo + from.hi) / 2 : wide / 2;
    const x0 = narrow ? 0 : Math.max(left, Math.min(wide - cells.length * side - side * 1.3 - 50, middle - (cells.length * side) / 2));
    if (from && cells.length) lens.beneath(`M${from.lo} ${from.y - 14}L${x0} ${y - 6}H${x0 + cells.length * side}L${from.hi} ${from.y - 14}z`, "fill: var(--c0); opacity: 0.55");
    if (!narrow) {
      lens.text(0, y + 18, capital(run.threadName(state.thread)), { size: 14, weight: 700 });
      lens.text(0, y + 36, `of ${run.blockName(state.block)}`, { size: 12.5, fill: "mute" });
      lens.text(0, y + 53, makes, { size: 12.5, fill: "mute" });
    }
    const texts = cells.map(({ operand }) => {
      const value = valueOf(operand);
      return value === null ? "\u00b7" : inCell(value).length > 5 ? full(value, 2) : inCell(value);
    });
    const glyphs = Math.max(1, ...texts.map((text) => text.length));
    cells.forEach(({ operand, at, i, term }, k) => {
      const x = x0 + k * side;
      const item = operand?.item;
      const hue = item?.w.access ? hueAt(run, item.place, item.offset) : "c";
      const over = at < done;
      lens.rect(x, y, side, tall, over ? `${hue}1` : `${hue}0`);
      lens.border(x + 0.5, y + 0.5, side, tall, "line");
      lens.text(x + side / 2, y + tall / 2 + 7, texts[k], { size: Math.min(23, side * 0.42, (side - (narrow ? 3 : 20)) / (glyphs * 0.6)), weight: 650, anchor: "middle", mono: true });
      const place = item?.w.access ? `[${run.element(item.place, item.offset).index}]` : "";
      if (place.length * 7 < side) lens.text(x + side / 2, y + tall + 14, place, { size: 11, anchor: "middle", fill: "mute", mono: true });
      if (k && !narrow) lens.text(x, y + tall / 2 + 5, i && term.name !== "add" ? "\u00d7" : "+", { size: 14, anchor: "middle", fill: "mute", style: "paint-order: stroke; stroke: var(--page); stroke-width: 6px; fill: var(--mute)" });
      if (at === done - 1 && state.current?.kind === MAKE) lens.ring(x + 1, y + 1, side - 2, tall - 2);
    });
    const x = cells.length ? x0 + cells.length * side : x0;
    const last = terms[done - 1];
    const value = last ? last.sum : this.lastValue();
    if (cells.length) lens.text(x + 15, y + tall / 2 + 7, terms.length > done ? "=" : "=", { size: 20, anchor: "middle", fill: "mute" });
    const [bx, bw] = [cells.length ? x + (narrow ? 26 : 32) : Math.max(left, Math.min(wide - 90, middle - 45)), narrow ? 62 : Math.max(side * 1.3, 70)];
    const high = Math.max(tall, 40);
    lens.rect(bx, y, bw, high, done === terms.length ? "c1" : "c0");
    lens.ring(bx, y, bw, high, "c2");
    const text = value === null ? "\u2013" : full(value, 4);
    lens.text(bx + bw / 2, y + high / 2 + 8, text, { size: Math.min(26, (bw - 10) / (text.length * 0.6)), weight: 700, anchor: "middle", mono: true });
    lens.text(bx + bw / 2, y + high + 15, terms.length ? `${done} of ${terms.length}` : "last value", { size: 12, anchor: "middle", fill: "mute" });
    return { x: bx + bw / 2, y: y + high + 20 };
  }

  lastValue() {
    const { state } = this;
    const { items } = threadOf(state.blockNow, state.thread, state.event);
    const found = items.filter((item) => item.step <= state.event && item.values.length && !item.w.quiet).pop();
    return found ? found.values[found.w.kind === "atomic" ? found.values.length - 1 : 0] : null; // after an atomic
  }

  madeIndex(array) {
    const { state } = this;
    const run = state.now;
    if (!array.drawn) return -1;
    const number = state.block * run.threads + state.thread;
    return run.pool.data(array.owner).findIndex((owner) => Number(owner) === number);
  }

  // Picks the thread that wrote an output, or the block that reads an input.
  pick(array, index) {
    const { state } = this;
    const run = state.now;
    if (array.writes_total) return pickOutput(state, array, index);
    const block = Math.floor(index / run.threads);
    if (run.recorded.includes(block) && array.count <= run.threads * run.grid[0]) state.pick({ block, thread: index % run.threads });
    return undefined;
  }
}

function flat([r0, c0, r1, c1], array) {
  const columns = array.shape.length > 1 ? array.shape[array.shape.length - 1] : 0;
  return columns ? [r0 * columns + c0, (r1 - 1) * columns + c1] : [c0, c1];
}

function largest(valueAt, from, to) {
  let found;
  for (let i = from; i < to; i++) {
    const v = valueAt(i);
    if (v !== undefined && v !== null && (found === undefined || Math.abs(v) > Math.abs(found))) found = v;
  }
  return found;
}
