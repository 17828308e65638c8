// Step by step: where the block is in its arrays, shared memory as it fills, the picked thread.
import { el, replace, setText } from "./dom.js";
import { count, exact, plural, triple } from "./format.js";
import { Grid, boxes, extent } from "./grid.js";
import { tones } from "./heat.js";
import { SHARED, subscripts } from "./run.js";
import { freshness, lineMarks, operands, tileOf } from "./marks.js";
import { Source } from "./source.js";
import { Other } from "./other.js";
import { Growth, HazardNote } from "./panels.js";
import { threadOf } from "./thread.js";
import { caption, sentence } from "./words.js";

export class Steps {
  constructor(state) {
    this.state = state;
    this.now = el("p", { class: "now", id: "now", "aria-live": "polite" });
    this.other = new Other(state);
    this.where = el("p", { class: "hint", id: "where" });
    this.hazard = new HazardNote(state);
    this.grids = el("div", { id: "step-grids" });
    this.threads = el("div", { class: "threads" });
    this.growth = new Growth();
    this.source = new Source(state);
    this.block = el("select", {
      id: "block",
      onchange: () => state.update({ block: Number(this.block.value) }),
    });
    this.note = el("p", { class: "hint", id: "sampled" });
    this.root = el(
      "div",
      { class: "steps" },
      el(
        "div",
        { class: "left" },
        el(
          "section",
          { class: "panel now-panel", "aria-label": "This step" },
          this.where,
          this.now,
          state.runs.length > 1 ? this.other.root : null,
        ),
        el(
          "section",
          { class: "panel held-now", "aria-label": "Memory at this step" },
          this.grids,
          key(),
        ),
        el(
          "section",
          { class: "panel who", "aria-label": "Block and thread" },
          el(
            "div",
            { class: "bar" },
            el("label", { for: "block" }, "Block "),
            this.block,
            this.note,
          ),
          this.threads,
        ),
      ),
      el("div", { class: "right" }, this.hazard.root, this.growth.root, this.source.root),
    );
    this.key = "";
  }

  prepare() {
    const run = this.state.now;
    if (this.key === String(run.number)) return;
    this.key = String(run.number);
    replace(
      this.block,
      run.recorded.map((number) => el("option", { value: number }, triple(run.blockAt(number)))),
    );
    const left = run.blocks - run.recorded.length;
    const short = run.batches.find((batch) => batch.full);
    const other = Array.from({ length: run.blocks }, (_, i) => i).find(
      (block) => !run.recorded.includes(block),
    );
    replace(
      this.note,
      left > 0
        ? [
            `${run.recorded.length} of ${count(run.blocks)} blocks are recorded step by step; counts are of all. For another, such as ${triple(run.blockAt(other))}: `,
            el("code", {}, run.recordingOf(other)),
          ]
        : null,
      short ? ` Only the first ${count(short.count)} steps are recorded.` : null,
    );
    this.arrays = run.arrays.filter((a) => a.drawn).map((array) => this.arrayGrid(run, array));
    this.shared = run.shared.map((variable) => this.sharedGrid(run, variable));
    replace(
      this.grids,
      [this.arrays, this.shared].flatMap((grids) => boxes(grids)),
    );
    this.threadGrid = new Grid({
      name: "Threads of the block",
      ...threadExtent(run),
      count: run.threads,
      most: run.bx > 8 ? 15 : 26,
      note: "",
      strip: run.by * run.bz === 1,
      describe: (i) => this.describeThread(run, i),
      pick: (i) => this.state.update({ thread: i }),
    });
    replace(this.threads, this.threadGrid.root);
  }

  arrayGrid(run, array) {
    const { rows, columns, strip } = extent(array.shape, array.count);
    const grid = new Grid({
      name: array.name,
      rows,
      columns,
      count: array.count,
      strip,
      small: 0.52,
      most: columns <= 8 ? 48 : 36,
      note: `${extentText(array.shape)} in global memory`,
      describe: (i) => [
        `${array.name}${subscripts(array.shape, i)}${this.shown(this.globalValue(run, array, i), array)}`,
        `byte ${i * array.size}`,
      ],
      pick: (i) => {
        const owner = run.pool.data(array.owner)[i];
        if (owner >= 0 && run.recorded.includes(Math.floor(owner / run.threads)))
          this.state.update({
            block: Math.floor(owner / run.threads),
            thread: owner % run.threads,
          });
      },
    });
    grid.array = array;
    return grid;
  }

  shown(value, about) {
    return value === null ? "" : ` = ${exact(value, about.size === 4 ? "f32" : "f64")}`;
  }

  globalValue(run, array, i) {
    const writer = array.writes_total
      ? this.state.blockNow.writer(array.place, i * array.size, this.state.step)
      : null;
    if (writer) return writer.value;
    return array.before === undefined ? null : Number(run.pool.data(array.before)[i]);
  }

  sharedGrid(run, variable) {
    const total = Math.floor(variable.bytes / variable.size);
    const { rows, columns, strip } = extent(variable.shape, total);
    const grid = new Grid({
      name: variable.name,
      rows,
      columns,
      count: total,
      strip,
      most: columns <= 8 ? 48 : 36,
      note: `${extentText(variable.shape)} in shared memory`,
      describe: (i) => this.describeShared(run, variable, i),
    });
    grid.variable = variable;
    return grid;
  }

  describeShared(run, variable, i) {
    const writer = this.state.blockNow.writer(
      SHARED,
      variable.start + i * variable.size,
      this.state.step,
    );
    const name = variable.name + subscripts(variable.shape, i);
    const bank = `byte ${variable.start + i * variable.size}, bank ${Math.floor((variable.start + i * variable.size) / 4) % 32}`;
    if (!writer) return [name, "nothing has been written here yet", bank];
    return [
      `${name} = ${writer.value === null ? "not recorded" : exact(writer.value, writer.type)}`,
      `written by ${run.threadName(writer.thread)} at step ${this.state.blockNow.countOf(writer.step)}${writer.filled ? ": a constant, not loaded" : ""}`,
      bank,
    ];
  }

  describeThread(run, i) {
    const silent = this.state.blockNow.silent().has(i);
    return [
      run.threadName(i),
      `warp ${Math.floor(i / 32)}, lane ${i % 32}`,
      silent ? "stores nothing to global memory" : "stores a result",
    ];
  }

  draw() {
    this.prepare();
    const { state } = this;
    const run = state.now;
    const block = state.blockNow;
    this.block.value = state.block;
    const w = block.watchedAt(state.step);
    const here = block.accesses(state.step);
    const mine = here.find((a) => a.thread === state.thread) ?? null;
    const thread = threadOf(block, state.thread);
    this.operands = operands(thread.byStep.get(state.step));
    this.drawArrays(run, block, w, here, mine);
    this.drawShared(run, block, w, here, mine);
    this.drawThreads(run, block);
    this.drawNow(run, block, w, here, thread);
    this.growth.draw(run, thread, state.step);
    this.hazard.draw();
    this.source.draw(run, block.lineAt(state.step), lineMarks(state));
  }

  marks(w, here, mine, place, size, index) {
    const found = new Map();
    const used = this.operands
      .filter((o) => o.place === place)
      .map((o) => ({ i: index(o.offset), kind: "through" }));
    if (!w || !w.access) return used;
    const kind = w.kind === "load" ? "read" : "write";
    for (const access of here) {
      if (access.place !== place) continue;
      for (let byte = 0; byte < w.width; byte += Math.min(size, w.size)) {
        const i = index(access.offset + byte);
        if (access === mine) found.set(i, "mine");
        else if (!found.has(i)) found.set(i, kind);
      }
    }
    const marks = [...found].map(([i, k]) => ({ i, kind: k }));
    return [...marks, ...marks.filter((m) => m.kind === "mine").map((m) => ({ i: m.i, kind }))]
      .filter((m) => m.kind !== "mine")
      .concat(marks.filter((m) => m.kind === "mine"));
  }

  drawArrays(run, block, w, here, mine) {
    const tiles = this.tiles(block);
    for (const grid of this.arrays) {
      const { array } = grid;
      const tile = [...(tiles.get(array.place) ?? [])].map((i) => ({ i, kind: "tile" }));
      const marks = this.marks(w, here, mine, array.place, array.size, (offset) =>
        Math.floor(offset / array.size),
      );
      const text =
        array.before === undefined || array.count > 4096
          ? null
          : (i) => this.globalValue(run, array, i);
      grid.set({
        shade: null,
        tones: tones(run, array, block, this.state.step),
        text,
        marks: [...tile, ...marks, ...this.bad(run, array.place, array.size, 0, array.count)],
      });
    }
  }

  // Elements of global arrays that the block touches in this phase, or did in the last phase
  // that touched the array: where its tile is.
  tiles(block) {
    const found = new Map();
    for (let phase = block.phases[this.state.step]; phase >= 0; phase--) {
      for (const [place, tile] of tileOf(block, phase))
        if (!found.has(place)) found.set(place, tile);
    }
    return found;
  }

  drawShared(run, block, w, here, mine) {
    for (const grid of this.shared) {
      const { variable } = grid;
      const index = (offset) => Math.floor((offset - variable.start) / variable.size);
      const inside = here.filter(
        (a) =>
          a.place === SHARED &&
          a.offset >= variable.start &&
          a.offset < variable.start + variable.bytes,
      );
      const marks = this.marks(w, inside, mine, SHARED, variable.size, index).filter(
        (m) => m.i >= 0 && m.i < grid.about.count,
      );
      const fills = [];
      const values = [];
      for (let i = 0; i < grid.about.count; i++) {
        const writer = block.writer(SHARED, variable.start + i * variable.size, this.state.step);
        values.push(writer);
        if (writer && writer.filled) fills.push({ i, kind: "fill" });
      }
      grid.set({
        shade: freshness(block, values),
        text: (i) => (values[i] ? (values[i].value ?? "?") : "\u00b7"),
        marks: [
          ...fills,
          ...marks,
          ...this.bad(run, SHARED, variable.size, variable.start, grid.about.count),
        ],
      });
    }
  }

  bad(run, place, size, start, count) {
    const moment = this.state.hazard;
    if (
      !moment ||
      moment.run !== run.number ||
      moment.place !== place ||
      !moment.seen.includes(this.state.step)
    )
      return [];
    const i = Math.floor((moment.offset - start) / size);
    return i >= 0 && i < count ? [{ i, kind: "bad" }] : [];
  }

  drawThreads(run, block) {
    const { state } = this;
    const on = new Set();
    const e = block.events[state.step];
    if (e !== undefined) block.batch.each(e, block.column, (thread) => on.add(thread));
    const silent = block.silent();
    const shade = new Float32Array(run.threads).fill(-1);
    for (const thread of on) shade[thread] = 0.3;
    const marks = [...silent].map((i) => ({ i, kind: "off" }));
    if (state.hazard && state.hazard.run === run.number)
      for (const i of state.hazard.threads) marks.push({ i, kind: "bad" });
    marks.push({ i: state.thread, kind: "mine" });
    this.threadGrid.set({ shade, text: null, marks });
    setText(
      this.threadGrid.caption.lastElementChild,
      `${plural(on.size, "thread")} of ${run.threads} in this step${silent.size ? `; hatched: ${plural(silent.size, "thread")} that store${silent.size === 1 ? "s" : ""} nothing` : ""}`,
    );
  }

  drawNow(run, block, w, here, thread) {
    const { state } = this;
    const phases =
      block.phaseCount > 1
        ? `Phase ${block.phases[state.step] + 1} of ${block.phaseCount} (${caption(block, block.phases[state.step])}) \u00b7 `
        : "";
    setText(
      this.where,
      `${phases}step ${state.stop + 1} of ${state.stops.length} \u00b7 ${run.blockName(state.block)}, ${run.threadName(state.thread)}`,
    );
    setText(this.now, sentence(run, block, w, here, thread, state));
    if (state.runs.length > 1) this.other.draw(run);
  }
}

function extentText(shape) {
  return shape.length === 1 ? plural(shape[0], "element") : shape.join("\u00d7") || "one element";
}

// Threads as the block has them; a block of one row as its warps.
function threadExtent(run) {
  const flat = run.by * run.bz === 1 && run.bx > 32;
  return flat
    ? { rows: Math.ceil(run.bx / 32), columns: 32 }
    : { rows: run.by * run.bz, columns: run.bx };
}

function key() {
  return el(
    "p",
    { class: "legend" },
    el("span", { class: "key tile" }, "this phase's tile"),
    el("span", { class: "key read" }, "read now"),
    el("span", { class: "key write" }, "written now"),
    el("span", { class: "key mine" }, "by the picked thread"),
    el("span", { class: "key through" }, "operand of its computation"),
    el("span", { class: "key fresh" }, "slot written in the latest phase"),
    el("span", { class: "key old" }, "before"),
    el("span", { class: "key fill" }, "filled with a constant"),
    el("span", { class: "key" }, "\u00b7 never written"),
    el("span", { class: "key tone" }, "value, where no number fits: darker is larger"),
  );
}
