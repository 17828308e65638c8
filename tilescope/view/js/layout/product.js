// A product of matrices: its arrays, and in the same shape the block's tiles and the operands of the
// picked thread.
import { MAKE, COPY, STORE, HATCH, hueOf, hueOfVariable } from "../model/story.js";
import { sumsAt, termsOf } from "../model/sums.js";
import { threadOf } from "../model/thread.js";
import { colours } from "../draw/colours.js";
import { drawSheet, topOf, usesDigits } from "../draw/sheet.js";
import { capital } from "../model/format.js";
import { flightsOf } from "./flights.js";
import { Matrices } from "./matrices.js";
import { after, sayElement } from "./say.js";
import { outputValue, sharedValue, touched } from "./values.js";

export class Product extends Matrices {
  draw(room) {
    const { state, lens } = this;
    this.prepare(state.now);
    const L = (this.L = this.geometry(room));
    this.beat = state.current;
    this.touched = this.beat ? touched(state.now, state.blockNow, this.beat, state.warp) : new Map();
    const own = threadOf(state.blockNow, state.thread, state.event);
    this.terms = termsOf(state.blockNow, state.thread, own.items).filter((term) => term.step < state.pos);
    const last = this.terms[this.terms.length - 1];
    this.operands = this.beat?.kind === MAKE && last && last.step >= this.beat.from ? last.operands : [];
    this.waiting = state.story.segments.map((list) => list.some((s) => s.hue === HATCH && s.from < state.pos && s.to > state.pos));
    lens.begin(L.wide, L.high, room);
    if (!L.narrow) this.drawLens(L);
    this.drawGrid(L);
    this.drawBlock(L);
    lens.end();
  }

  // Lens from C's block to the block's threads.
  drawLens(L) {
    const { lens } = this;
    const pen = lens.pen;
    const c = this.cell(L.c, L.t.row, L.t.column);
    const w = Math.min(L.t.wide, this.size.n - L.t.column) * L.g;
    const h = Math.min(L.t.high, this.size.m - L.t.row) * L.g;
    pen.fillStyle = colours().sunk;
    pen.beginPath();
    pen.moveTo(c.x + w, c.y);
    pen.lineTo(L.block.x - 12, 8);
    pen.lineTo(L.block.x - 12, L.high - 8);
    pen.lineTo(c.x + w, c.y + h);
    pen.fill();
    pen.beginPath();
    pen.roundRect(L.block.x - 12, 0, L.wide - L.block.x + 12, L.high, 10);
    pen.fill();
  }

  drawBlock(L) {
    const { lens, state } = this;
    const { now: run, story } = state;
    const phase = story.phases[story.phaseAt(state.pos)];
    const over = state.pos === story.count && !state.isCut;
    const p = L.phase;
    lens.text(p.x, p.y + 24, capital(run.blockName(state.block)), { size: 14, weight: 700 });
    if (story.phaseCount > 1 && (this.shared || L.narrow)) {
      lens.text(p.x + 1, p.y + 60, "phase", { size: 13, fill: "mute" });
      const number = over ? "\u2713" : phase?.number || story.phaseCount;
      lens.text(p.x - 1, p.y + 102, [String(number), { text: over || state.isCut ? "" : ` of ${story.phaseCount}`, style: { class: "of" } }], { size: 40, weight: 650 });
      if (state.isCut) lens.text(p.x, p.y + 118, `of ${story.phaseCount} recorded`, { size: 12, fill: "mute" });
    }
    if (run.story.depth && !L.narrow) {
      const { done, all } = this.progress(state.warp);
      lens.text(p.x + 1, p.y + 60, "along k", { size: 13, fill: "mute" });
      lens.text(p.x - 1, p.y + 98, all ? String(done * run.story.depth) : "\u2013", { size: 34, weight: 650 });
      lens.text(p.x + 1, p.y + 120, `of ${this.size.k}`, { size: 14, fill: "mute" });
    }
    const event = state.event;
    if (this.shared) {
      this.drawCopy(L, 0, L.left, event);
      this.drawCopy(L, 1, L.top, event);
    }
    this.drawSums(L);
    const squares = L.cell < 24;
    if (squares && !L.narrow && this.shared && !this.compact) {
      lens.text(p.x, p.y + 132, "\u25a0 positive \u25a1 negative", { size: 12, fill: "mute" });
      lens.text(p.x, p.y + 149, "size is the value", { size: 12, fill: "mute" });
    }
    this.drawArrows(L);
  }

  // Part of a shared variable that is drawn: the buffer that was used last.
  bufferOf(which) {
    const variable = this.copies[which];
    const { rows, cols } = which ? this.L.parts.above : this.L.parts.left;
    const item = [...this.terms].reverse().flatMap((t) => t.operands).find((o) => o?.item && this.state.now.element(o.item.place, o.item.offset).variable === variable);
    const index = item ? this.state.now.element(item.item.place, item.item.offset).index : 0;
    return Math.floor(index / (rows * cols)) * rows * cols;
  }

  drawCopy(L, which, at, event) {
    const { lens, state } = this;
    const run = state.now;
    const variable = this.copies[which];
    const { rows, cols } = which ? L.parts.above : L.parts.left;
    const hue = hueOfVariable(run, variable);
    const first = this.bufferOf(which);
    const found = this.touched.get(variable);
    const held = state.holding && this.beat ? state.blockNow.steps[this.beat.from] - 1 : event;
    lens.name(at.x, at.y - 6, variable.name, "", hue);
    const range = this.ranges[which];
    drawSheet(lens.pen, {
      ...at, cell: L.cell, rows, cols, hue, digits: usesDigits(range, L.cell), top: topOf(range),
      at: (i, j) => {
        const index = first + i * cols + j;
        const arrives = found?.writes.has(index);
        const now = sharedValue(state.blockNow, variable, index, arrives ? held : event);
        const hot = found?.reads.has(index);
        return {
          value: now ? now.value : undefined,
          tone: !now ? 0 : hot ? 2 : arrives && !state.holding ? 3 : 1,
          state: now?.write.filled ? "pad" : "",
        };
      },
    });
    lens.spot({
      ...at, w: cols * L.cell, h: rows * L.cell,
      say: (x, y) => sayElement(state, variable, first + Math.floor(y / L.cell) * cols + Math.floor(x / L.cell)),
      grid: { rows, cols, cell: L.cell, name: variable.name },
    });
  }

  drawSums(L) {
    const { lens, state } = this;
    const run = state.now;
    const { t } = L;
    const sums = sumsAt(state.blockNow, state.pos);
    const range = this.ranges[2];
    const stored = this.beat?.kind === STORE;
    if (!this.plain && this.disjoint(run)) return this.drawBands(L);
    lens.name(L.sum.x, L.sum.y - 6, this.plain ? "sum" : this.c.name, "", "c");
    drawSheet(lens.pen, {
      ...L.sum, cell: L.cell, rows: t.high, cols: t.wide, hue: "c", digits: usesDigits(range, L.cell), top: topOf(range),
      at: (i, j) => {
        const [row, column] = [t.row + i, t.column + j];
        const outside = row >= this.size.m || column >= this.size.n;
        if (!this.plain) {
          const value = outside ? undefined : outputValue(state, this.c, row * this.size.n + column);
          return { value, tone: value === undefined ? 0 : 2 };
        }
        const thread = i * run.bx + j;
        const warp = thread >> 5;
        const begun = sums.count[thread] > 0;
        const hot = warp === state.warp && (this.beat?.kind === MAKE || stored);
        return {
          value: begun ? sums.value[thread] : L.cell >= 24 ? 0 : undefined,
          tone: !begun ? (L.cell >= 24 ? 1 : 0) : hot ? (stored ? 3 : 2) : 1,
          state: this.waiting[warp] ? "wait" : outside ? "pad" : "",
        };
      },
    });
    lens.spot({
      ...L.sum, w: t.wide * L.cell, h: t.high * L.cell,
      say: (x, y) => this.saySum(L, Math.floor(y / L.cell), Math.floor(x / L.cell), sums),
      pick: (x, y) => this.pickSum(L, Math.floor(y / L.cell), Math.floor(x / L.cell)),
      grid: { rows: t.high, cols: t.wide, cell: L.cell, name: "sum" },
    });
  }

  // Parts of C by the warp that holds their sums, filled as far as it has gone along k.
  drawBands(L) {
    const { lens, state, c } = this;
    const run = state.now;
    const { t, cell } = L;
    lens.name(L.sum.x, L.sum.y - 6, c.name, "sums in registers", "c");
    lens.rect(L.sum.x, L.sum.y, t.wide * cell, t.high * cell, "page");
    this.bands(run).forEach((box, warp) => {
      if (!box) return;
      const { done, all } = this.progress(warp);
      const [x, y] = [L.sum.x + (box[1] - t.column) * cell, L.sum.y + (box[0] - t.row) * cell];
      const [w, h] = [(box[3] - box[1]) * cell, (box[2] - box[0]) * cell];
      const here = warp === state.warp;
      const stored = outputValue(state, c, box[0] * this.size.n + box[1]) !== undefined;
      lens.rect(x, y, w * (all ? done / all : 1), h - 1, stored || here ? "c1" : "c0");
      if (stored && !here) lens.rect(x, y, w, h - 1, "c1");
      lens.border(x + 0.5, y + 0.5, w - 1, h - 1, "line");
      if (h > 12) lens.text(x + 6, y + h / 2 + 4, `warp ${warp}${stored ? ", stored" : ""}`, { size: 12, weight: here ? 700 : 400, fill: here ? "ink" : "mute" });
      if (here) lens.ring(x, y, w, h - 1);
    });
    lens.spot({
      ...L.sum, w: t.wide * cell, h: t.high * cell,
      say: (x, y) => this.saySum(L, Math.floor(y / cell), Math.floor(x / cell), null),
      pick: (x, y) => this.pickSum(L, Math.floor(y / cell), Math.floor(x / cell)),
      grid: { rows: t.high, cols: t.wide, cell, name: c.name },
    });
  }

  // Whether the warps' rectangles do not overlap.
  disjoint(run) {
    const area = (box) => (box[2] - box[0]) * (box[3] - box[1]);
    const boxes = this.bands(run).filter(Boolean);
    return boxes.length > 0 && boxes.reduce((sum, box) => sum + area(box), 0) <= area(this.ownedBox(run));
  }

  // The rectangle of C that the block writes in the whole run.
  ownedBox(run) {
    const boxes = this.bands(run).filter(Boolean);
    const edge = (k, pick) => pick(...boxes.map((box) => box[k]));
    return boxes.length ? [edge(0, Math.min), edge(1, Math.min), edge(2, Math.max), edge(3, Math.max)] : null;
  }

  // The rectangle of C that each warp of the block writes.
  bands(run) {
    const { state, c } = this;
    if (!c.drawn) return [];
    const key = `${run.number}:${state.block}`;
    if (this.bandsOf?.key === key) return this.bandsOf.found;
    const found = new Array(run.warps).fill(null);
    const owners = run.pool.data(c.owner);
    for (let i = 0; i < owners.length; i++) {
      const owner = Number(owners[i]) - state.block * run.threads;
      if (owner < 0 || owner >= run.threads) continue;
      const [row, column, warp] = [Math.floor(i / c.shape[1]), i % c.shape[1], owner >> 5];
      const b = found[warp] ?? [row, column, row + 1, column + 1];
      found[warp] = [Math.min(b[0], row), Math.min(b[1], column), Math.max(b[2], row + 1), Math.max(b[3], column + 1)];
    }
    this.bandsOf = { key, found };
    return found;
  }

  saySum(L, i, j, sums) {
    const { state } = this;
    if (!this.plain) return sayElement(state, this.c, (L.t.row + i) * this.size.n + L.t.column + j);
    const thread = i * state.now.bx + j;
    return after(state, thread, sums.count[thread] ? sums.value[thread] : 0, sums.count[thread]);
  }

  pickSum(L, i, j) {
    if (this.plain) this.state.pick({ thread: i * this.state.now.bx + j });
    else this.pickElement(L.t.row + i, L.t.column + j);
  }

  // Arrows along which values move: operands to the sum, a tile to its copy, the sum to C.
  drawArrows(L) {
    const { lens, state } = this;
    const wide = L.cell < 14 ? 2 : 2.5;
    const cell = this.elementOf(state.thread);
    const own = cell && { x: L.sum.x + (cell.column - L.t.column) * L.cell, y: L.sum.y + (cell.row - L.t.row) * L.cell };
    if (own && this.plain) lens.ring(own.x, own.y, L.cell, L.cell, "ink", wide);
    const kind = this.beat?.kind;
    if (kind === MAKE && this.shared && own) this.drawOperands(L, own, wide);
    if (L.narrow || !this.shared) return;
    const phase = state.story.phaseAt(state.pos);
    if (kind === COPY)
      [this.a, this.b].forEach((array, which) => {
        const w = state.story.window(phase, array.place);
        if (!w || !this.touched.get(this.copies[which])?.writes.size) return;
        const at = which ? L.b : L.a;
        const x = at.x + w[3] * L.g;
        const y = at.y + ((w[0] + w[2]) / 2) * L.g;
        const to = which ? { x: L.top.x, y: L.top.y + (L.parts.above.rows * L.cell) / 2 } : { x: L.left.x, y: L.left.y + (L.parts.left.rows * L.cell) / 2 };
        const middle = (x + to.x) / 2;
        lens.arrow(`M${x} ${y}C${middle} ${y} ${middle} ${to.y} ${to.x - 4} ${to.y}`, hueOf(state.now, array), 2.5);
      });
    if (kind === STORE && own) {
      const x = L.c.x + Math.min(L.t.column + L.t.wide, this.size.n) * L.g;
      const y = L.c.y + (L.t.row + Math.min(L.t.high, this.size.m - L.t.row) / 2) * L.g;
      const low = Math.min(L.high - 2, L.sum.y + L.t.high * L.cell + 5);
      lens.arrow(`M${L.sum.x + 8} ${L.sum.y + L.t.high * L.cell}C${L.sum.x - 10} ${low} ${L.block.x} ${low} ${L.block.x - 16} ${low - 22}S${x + 40} ${y} ${x + 5} ${y}`, "c", 2.5);
    }
  }

  drawOperands(L, own, wide) {
    const { lens, state } = this;
    const run = state.now;
    this.operands.forEach((operand) => {
      const item = operand?.item;
      if (!item) return;
      const { variable, index } = run.element(item.place, item.offset);
      const which = this.copies.indexOf(variable);
      if (which < 0) return;
      const { rows, cols } = which ? L.parts.above : L.parts.left;
      const local = index - this.bufferOf(which);
      const [row, column] = [Math.floor(local / cols), local % cols];
      const at = which ? L.top : L.left;
      const [x, y] = [at.x + column * L.cell, at.y + row * L.cell];
      const hue = hueOfVariable(run, variable);
      lens.ring(x, y, L.cell, L.cell, "ink", wide);
      if (L.cell < 24) {
        if (which) lens.ring(x - 1, at.y - 1, L.cell + 2, rows * L.cell + 2, "ink", wide);
        else lens.ring(at.x - 1, y - 1, cols * L.cell + 2, L.cell + 2, "ink", wide);
      }
      const shift = L.cell < 24 ? L.cell / 2 : L.cell * 0.84;
      if (which) lens.arrow(`M${x + shift} ${y + L.cell}L${own.x + shift} ${own.y - 3}`, hue);
      else lens.arrow(`M${x + L.cell} ${y + shift}L${own.x - 3} ${own.y + shift}`, hue);
    });
  }

  flights() {
    return flightsOf(this);
  }
}
