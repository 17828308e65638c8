// Who reads what: every array as a heat map, and all that one output's thread has read.
import { blockOf } from "./block.js";
import { el, replace, setText } from "./dom.js";
import { count, exact, hand, list, plural, shape, times } from "./format.js";
import { Grid, extent, sideBySide } from "./grid.js";
import { spot, subscripts } from "./run.js";
import { threadOf } from "./thread.js";

const SHADES = [
  ["reads", "how often it was read"],
  ["writes", "how often it was written"],
  ["owner", "which block wrote it"],
];

export class Matrices {
  constructor(state) {
    this.state = state;
    this.picked = null;
    const options = SHADES.map(([value, text]) => el("option", { value }, text));
    this.select = el(
      "select",
      { id: "shade", onchange: () => state.update({ shade: this.select.value }) },
      options,
    );
    this.legend = el("div", { class: "legend", id: "legend" });
    this.parts = state.runs.map((run) => this.section(run));
    this.root = el(
      "div",
      {},
      state.runs.length > 1
        ? el("p", { class: "headline", id: "headline" }, headline(state.runs))
        : null,
      el(
        "div",
        { class: "bar" },
        el("label", { for: "shade" }, "Shade each element by "),
        this.select,
        this.legend,
      ),
      el(
        "p",
        { class: "hint" },
        `${hand()} an output element to see what its thread read, in order; ${hand().toLowerCase()} an input element to see who read it.`,
      ),
      this.parts.map((part) => part.root),
    );
  }

  section(run) {
    const part = { run, grids: [] };
    for (const array of run.arrays) {
      if (array.drawn) part.grids.push(this.grid(part, array));
    }
    const left = run.arrays
      .filter((array) => !array.drawn)
      .map((array) => `${array.name} (${plural(array.count, "element")})`);
    part.order = new Map();
    part.answer = el("p", { class: "answer", "aria-live": "polite", id: `answer${run.number}` });
    part.root = el(
      "section",
      { class: "panel", "aria-label": `Arrays of ${run.name}` },
      el("h2", {}, run.name, " ", el("span", { class: "note" }, summary(run))),
      sideBySide(part.grids),
      left.length ? el("p", { class: "hint" }, `Too large to draw: ${left.join(", ")}.`) : null,
      part.answer,
    );
    return part;
  }

  grid(part, array) {
    const { rows, columns } = extent(array.shape, array.count);
    const grid = new Grid({
      name: array.name,
      rows,
      columns,
      count: array.count,
      strip: array.shape.length < 2,
      note: `${array.shape.join("\u00d7") || "1"} ${array.type}`,
      describe: (i) => [...this.describe(part.run, array, i), ...told(part, array, i)],
      pick: (i) => this.pick(part.run, array, i),
    });
    grid.array = array;
    return grid;
  }

  describe(run, array, i) {
    const data = (name) => run.pool.data(array[name])[i];
    const lines = [array.name + subscripts(array.shape, i)];
    if (array.after !== undefined) {
      const [before, after] = [Number(data("before")), Number(data("after"))];
      lines[0] += ` = ${exact(after, array.size === 4 ? "f32" : "f64")}`;
      if (before !== after)
        lines.push(`before the run ${exact(before, array.size === 4 ? "f32" : "f64")}`);
    }
    lines.push(`byte ${i * array.size} of ${array.name}`);
    lines.push(`read ${times(Number(data("reads")))}, written ${times(Number(data("writes")))}`);
    const owner = data("owner");
    if (owner >= 0) {
      lines.push(
        `written by ${run.threadName(owner % run.threads)} of ${run.blockName(Math.floor(owner / run.threads))}`,
      );
    }
    const who = readers(run, array, i);
    if (who.size) {
      const names = [...who]
        .slice(0, 4)
        .map(
          ([t, n]) =>
            `${run.threadName(t % run.threads)} of ${run.blockName(Math.floor(t / run.threads))}${n > 1 ? ` ${times(n)}` : ""}`,
        );
      lines.push(
        `read by ${list([...names, ...Array.from({ length: who.size - names.length })], 4)}`,
      );
      if (run.recorded.length < run.blocks)
        lines.push(`(of the ${run.recorded.length} recorded blocks)`);
    }
    return lines;
  }

  pick(run, array, i) {
    const owner = run.pool.data(array.owner)[i];
    this.picked = { array: array.name, i };
    if (owner >= 0) {
      const block = Math.floor(owner / run.threads);
      if (run.recorded.includes(block))
        this.state.update({
          run: run.number,
          block,
          thread: owner % run.threads,
          step: this.state.run === run.number && this.state.block === block ? this.state.step : 0,
        });
      else this.state.update({});
    } else this.state.update({ run: run.number });
  }

  draw() {
    this.select.value = this.state.shade;
    for (const part of this.parts) this.drawPart(part);
  }

  // The thread to show in a run: the one that owns the element picked, else the one at hand.
  who(run) {
    const { picked, state } = this;
    const array = picked && run.arrays.find((a) => a.name === picked.array && a.drawn);
    if (array && picked.i < array.count) {
      const owner = run.pool.data(array.owner)[picked.i];
      if (owner >= 0)
        return {
          block: Math.floor(owner / run.threads),
          thread: owner % run.threads,
          element: array.name + subscripts(array.shape, picked.i),
        };
      return { array, i: picked.i };
    }
    if (run.number === state.run) return { block: state.block, thread: state.thread };
    return { block: run.recorded[0], thread: 0 };
  }

  drawPart(part) {
    const { run } = part;
    const who = this.who(run);
    part.order = new Map();
    const marks = new Map(part.grids.map((g) => [g.array.place, []]));
    const known = who.block !== undefined && run.recorded.includes(who.block);
    if (known) this.footprint(run, who, marks, part);
    else if (who.array) this.asked(run, who, marks, part);
    else
      setText(
        part.answer,
        `${run.threadName(who.thread)} of ${run.blockName(who.block)} wrote it; its steps are not recorded (${run.recorded.length} of ${count(run.blocks)} blocks are).`,
      );
    for (const grid of part.grids) {
      const shade = shades(run, grid.array, this.state.shade);
      const idle = this.state.shade !== "owner" && shade.most === 0;
      const text =
        grid.array.count > 4096
          ? null
          : idle
            ? contents(run, grid.array)
            : label(run, grid.array, this.state.shade);
      setText(
        grid.caption.lastElementChild,
        `${grid.about.note}${idle && grid.array.after !== undefined && grid.cell >= 34 * grid.scale ? ", its values after the run" : ""}`,
      );
      grid.set({ shade: shade.values, text, marks: marks.get(grid.array.place) });
    }
    if (!part.run.number) this.drawLegend();
  }

  footprint(run, who, marks, part) {
    const block = blockOf(run, who.block);
    const { own, through } = threadOf(block, who.thread).sources();
    const order = (part.order = new Map());
    const mine = new Set(own.map(({ place, offset }) => spot(place, offset)));
    const got = [...own, ...through.filter(({ place, offset }) => !mine.has(spot(place, offset)))];
    got.sort((a, b) => a.item.step - b.item.step);
    for (const { place, offset, by } of got)
      note(order, run, place, offset, by === undefined ? "read" : "through", order.size + 1);
    for (const [key, mark] of order) {
      const [place, i] = key.split(":").map(Number);
      if (marks.has(place)) marks.get(place).push({ i, ...mark });
    }
    for (const item of threadOf(block, who.thread).items) {
      if (item.w.kind === "load" || !(item.place >= 0) || !marks.has(item.place)) continue;
      marks.get(item.place).push({ i: run.element(item.place, item.offset).index, kind: "mine" });
    }
    const reads = own.length;
    const kinds = [...order.values()];
    const others = kinds.filter((mark) => mark.kind === "through").length;
    const subject = who.element
      ? `${who.element} belongs to ${run.threadName(who.thread)} of ${run.blockName(who.block)}, which`
      : `${capital(run.threadName(who.thread))} of ${run.blockName(who.block)}`;
    setText(
      part.answer,
      `${subject} read ${plural(reads, "element")} of global memory itself${block.batch.full ? " in the steps recorded" : ""}${others ? `, and got ${count(others)} more that other threads had put into shared memory` : ""}. ${part.grids.some((g) => g.cell >= 17 * g.scale) ? "Numbers give the order." : `${hand() === "Tap" ? "Tap a cell" : "Hover"} for the order.`}`,
    );
  }

  asked(run, { array, i }, marks, part) {
    const who = readers(run, array, i);
    for (const grid of part.grids)
      if (grid.array === array) marks.get(array.place).push({ i, kind: "read" });
    for (const other of part.grids) {
      if (!other.array.writes_total) continue;
      const owner = run.pool.data(other.array.owner);
      for (let k = 0; k < owner.length; k++)
        if (who.has(owner[k])) marks.get(other.array.place).push({ i: k, kind: "mine" });
    }
    const total = Number(run.pool.data(array.reads)[i]);
    setText(
      part.answer,
      `${array.name}${subscripts(array.shape, i)} was read ${times(total)}${who.size ? `, by ${plural(who.size, "thread")}${run.recorded.length < run.blocks ? " of the recorded blocks" : ""}; their outputs are ringed` : ""}.`,
    );
  }

  drawLegend() {
    const swatches = [0, 0.25, 0.5, 0.75, 1].map((t) => el("i", { class: `heat h${t * 4}` }));
    const most = Math.max(
      1,
      ...this.state.runs.flatMap((run) =>
        run.arrays.filter((a) => a.drawn).map((a) => shades(run, a, this.state.shade).most),
      ),
    );
    const text =
      this.state.shade === "owner"
        ? "each block has a shade of its own; the number is the block's"
        : `to ${times(most)}`;
    replace(
      this.legend,
      this.state.shade === "owner" ? null : ["0\u00d7 ", ...swatches, " "],
      text,
      el("span", { class: "key read" }, "read by the thread"),
      el("span", { class: "key through" }, "got through shared memory"),
      el("span", { class: "key mine" }, "its output"),
    );
  }
}

function told(part, array, i) {
  const mark = part.order.get(`${array.place}:${i}`);
  if (!mark) return [];
  return [
    mark.kind === "read"
      ? `number ${mark.note} that the picked thread read`
      : `number ${mark.note} that the picked thread got, through shared memory`,
  ];
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

function note(order, run, place, offset, kind, number) {
  const { index } = run.element(place, offset);
  const key = `${place}:${index}`;
  if (!order.has(key)) order.set(key, { kind, note: String(number) });
}

// Shades are relative to the most accessed element of all runs, so that runs compare.
const shadeCache = new Map();
function shades(run, array, by) {
  const key = `${run.number}:${array.place}:${by}`;
  if (shadeCache.has(key)) return shadeCache.get(key);
  const data = run.pool.data(array[by]);
  const values = new Float32Array(array.count);
  let most = 0;
  for (let i = 0; i < array.count; i++) {
    if (by === "owner")
      values[i] = data[i] < 0 ? -1 : ((Math.floor(data[i] / run.threads) * 0.382) % 1) * 0.9;
    else if ((values[i] = Number(data[i])) > most) most = values[i];
  }
  const made = { values, most };
  shadeCache.set(key, made);
  if (by !== "owner") {
    const top = run.heatTop?.[by] ?? most;
    for (let i = 0; i < array.count; i++)
      values[i] = values[i] ? 0.12 + 0.88 * (values[i] / Math.max(1, top)) : -1;
  }
  return made;
}

export function prepareShades(runs) {
  for (const by of ["reads", "writes"]) {
    let top = 1;
    for (const run of runs) {
      for (const array of run.arrays) {
        if (array.drawn)
          for (const value of run.pool.data(array[by])) if (value > top) top = Number(value);
      }
    }
    for (const run of runs) run.heatTop = { ...run.heatTop, [by]: top };
  }
}

function label(run, array, by) {
  const data = run.pool.data(array[by]);
  if (by === "owner")
    return (i) => (data[i] < 0 ? null : String(Math.floor(data[i] / run.threads)));
  return (i) => (data[i] ? String(data[i]) : null);
}

// What the second run does to the traffic of the first.
function headline([one, two]) {
  const [a, b] = [one, two].map((run) => run.counters.global_load.accesses);
  if (!a || !b || a === b) return `${one.name} and ${two.name} load as often from global memory.`;
  const [more, less, name, other] = a > b ? [a, b, two.name, one.name] : [b, a, one.name, two.name];
  const ratio = more / less;
  return `${name} loads ${Number.isInteger(ratio) ? times(ratio) : `${ratio.toFixed(1)}\u00d7`} less often from global memory than ${other}: ${count(less)} against ${count(more)}.`;
}

// Where there is nothing to count: what the array held in the end.
function contents(run, array) {
  if (array.after === undefined) return null;
  const data = run.pool.data(array.after);
  return (i) => Number(data[i]);
}

function summary(run) {
  const facts = [`${plural(run.blocks, "block")} of ${shape(run.block)} threads`];
  for (const array of run.arrays) {
    if (!array.reads_total) continue;
    const each = array.reads_total / array.count;
    facts.push(
      `each element of ${array.name} read ${Number.isInteger(each) ? times(each) : `${each.toFixed(2)}\u00d7 on average`}`,
    );
  }
  return facts.join(" \u00b7 ");
}

// Which threads of the recorded blocks read an element, and how often each.
function readers(run, array, i) {
  const found = new Map();
  for (const batch of run.batches) {
    for (let e = 0; e < batch.count; e++) {
      const w = run.watched[batch.watched[e]];
      if (!w || !w.access || w.kind === "store" || !touches(run, batch, e, w, array, i)) continue;
      batch.blocks.forEach((block, column) => {
        batch.each(e, column, (thread, z, y, x) => {
          if (batch.placeOf(e, z, y, x, column) !== array.place) return;
          const offset = batch.offsetOf(e, z, y, x, column);
          if (offset <= i * array.size && i * array.size < offset + w.width) {
            const key = block * run.threads + thread;
            found.set(key, (found.get(key) ?? 0) + 1);
          }
        });
      });
    }
  }
  return found;
}

// A quick look at an event's few distinct addresses, before asking every thread.
function touches(run, batch, e, w, array, i) {
  const place = run.pool.items[batch.place[e]].data;
  if (place.length === 1 && place[0] !== array.place) return false;
  const low = i * array.size;
  const offsets = run.pool.items[batch.offset[e]].data;
  for (let k = 0; k < offsets.length; k++)
    if (offsets[k] <= low && low < offsets[k] + w.width) return true;
  return false;
}
