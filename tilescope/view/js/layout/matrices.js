// The arrays of a product of matrices: B above, A on the left, C in the corner, and the extents of all
// parts of the picture.
import { hueOf } from "../model/story.js";
import { colours } from "../draw/colours.js";
import { drawSheet, topOf, usesDigits } from "../draw/sheet.js";
import { Lens } from "../draw/lens.js";
import { before, outputValue } from "./values.js";
import { fedOf, pickOutput } from "./pick.js";
import { sayElement } from "./say.js";

const LARGE = 12; // pixels of a cell under which an array is drawn as tiles
const GAP = 14;
const GHOSTS = 3; // cells drawn past an edge; wider tiles end at it

export class Matrices {
  constructor(state) {
    this.state = state;
    this.lens = new Lens("Arrays in global memory, the block's tiles, and its threads");
    this.root = this.lens.root;
  }

  prepare(run) {
    if (this.run === run) return;
    this.run = run;
    const array = (place) => run.byPlace.get(place);
    [this.a, this.b] = run.story.inputs.map(array);
    this.c = array(run.story.outputs[0]);
    const copyOf = (source) => {
      const number = run.story.sources.indexOf(source.place);
      return number < 0 ? null : run.shared[number];
    };
    this.copies = [copyOf(this.a), copyOf(this.b)];
    this.shared = this.copies.every(Boolean);
    const [m, k] = this.a.shape;
    const n = this.b.shape[1];
    this.size = { m, k, n };
    this.ranges = [this.a, this.b, this.c].map((one) => run.story.ranges[one.place]);
  }

  // Rows and columns of C that a block makes, and those of the first block: its full extent.
  tile() {
    const { story, now } = this.state;
    const own = story.whole(this.c.place, 1) ?? this.ownedBox(now) ?? [0, 0, Math.min(now.by, this.size.m), Math.min(now.bx, this.size.n)];
    const plain = now.bz === 1 && now.threads > 1 && own[2] - own[0] <= now.by && own[3] - own[1] <= now.bx;
    this.plain = plain; // one thread for each element, along the block's axes
    const high = plain ? now.by : own[2] - own[0];
    const wide = plain ? now.bx : own[3] - own[1];
    return { row: own[0], column: own[1], high, wide };
  }

  geometry(room) {
    const { m, k, n } = this.size;
    const { compact } = this; // smaller, beside another run
    const narrow = room < 560 && !compact;
    const most = Math.max(m, k, n);
    let g = narrow ? 76 / most : Math.min(27, 334 / (k + n));
    const tiles = g < LARGE || narrow || compact;
    if (tiles && !narrow) g = (compact ? 104 : 150) / most;
    const t = this.tile();
    const L = { g, tiles, narrow, t };
    const digits = tiles ? 0 : 16;
    const over = (size, step) => {
      const cells = Math.ceil(size / step) * step - size;
      return tiles || cells > GHOSTS ? 0 : cells * g;
    };
    const [first] = this.state.story.windows.filter((w) => w[1] === this.a.place && !w[2]);
    L.deep = this.shared && first ? first[6] - first[4] : this.run.story.depth || Math.min(k, 16);
    L.a = { x: digits, y: 22 + k * g + over(k, L.deep) + (tiles ? 22 : 18) };
    L.b = { x: digits + k * g + over(k, L.deep) + GAP, y: 22 };
    L.c = { x: L.b.x, y: L.a.y };
    const wide = L.c.x + n * g + over(n, t.wide);
    const high = L.a.y + m * g + over(m, t.high);
    const parts = this.parts(t);
    const side = Math.max(parts.left.cols, parts.left.rows, parts.above.rows, parts.above.cols, t.high, t.wide);
    let cell = side <= 4 ? (narrow ? 54 : 74) : Math.max(2.5, Math.floor((Math.min(narrow ? (room - 30) / 2 : 178)) / side * 2) / 2);
    if (compact) cell = Math.max(1.5, Math.min(40, Math.floor((116 / side) * 2) / 2));
    L.cell = side > 4 && side <= 8 ? Math.min(cell, 22 * (narrow ? 0.85 : 1)) : cell;
    const block = { x: narrow ? 4 : wide + (tiles ? 46 : 70), y: narrow ? high + 14 : 0 };
    L.block = block;
    const words = narrow || compact || this.state.story.phaseCount < 2 ? 0 : L.cell < 24 ? 160 : 112; // of the phase
    const left = this.shared ? parts.left.cols * L.cell + GAP : 0;
    const up = this.shared ? Math.max(words, parts.above.rows * L.cell + GAP + 8) : narrow ? 0 : 40;
    const inset = Math.max(left, words ? 150 : 0); // the words stand left of the upper copy
    L.top = { x: block.x + inset, y: block.y + 22 };
    L.sum = { x: block.x + inset + (this.shared ? 0 : 60), y: block.y + 22 + up };
    L.left = { x: L.sum.x - left, y: L.sum.y };
    if (!this.shared) L.sum.x = block.x + (narrow ? 0 : this.run.story.depth ? 92 : 20);
    L.wide = narrow ? Math.max(wide, L.sum.x + t.wide * L.cell + 2, 300) : L.sum.x + t.wide * L.cell + 12 + (this.shared ? 0 : 30);
    L.wide = narrow ? L.wide : Math.max(L.wide, block.x + (compact ? 130 : 190));
    L.high = Math.max(high + 4, L.sum.y + t.high * L.cell + 8, narrow || compact || this.shared ? 0 : 300);
    L.phase = narrow ? { x: wide + 22, y: 40 } : { x: block.x + 2, y: 0 };
    L.parts = parts;
    return L;
  }

  // Extents of the copies in shared memory: their last two.
  parts(t) {
    const shape = (variable, array) => {
      // A 1-D copy has the rows and columns of the tile that is copied into it.
      const w = variable.shape.length < 2 ? this.state.story.window(0, array.place) : null;
      if (w && (variable.shape[0] % ((w[2] - w[0]) * (w[3] - w[1]))) === 0) return { rows: w[2] - w[0], cols: w[3] - w[1] };
      const [rows, cols] = variable.shape.slice(-2).length === 2 ? variable.shape.slice(-2) : [1, variable.shape[0]];
      return { rows, cols };
    };
    if (!this.shared) return { left: { rows: t.high, cols: 1 }, above: { rows: 1, cols: t.wide } };
    return { left: shape(this.copies[0], this.a), above: shape(this.copies[1], this.b) };
  }

  cell(origin, row, column) {
    return { x: origin.x + column * this.L.g, y: origin.y + row * this.L.g };
  }

  drawGrid(L) {
    const { lens, state, a, b, c } = this;
    const run = state.now;
    const { m, k, n } = this.size;
    if (!L.narrow) {
      lens.text(0, 24, "Grid", { size: 14, weight: 700 });
      lens.text(0, 43, `${run.grid[0]}\u00d7${run.grid[1]} blocks`, { size: 13, fill: "mute" });
    }
    const phase = state.story.phaseAt(state.pos);
    const done = state.pos === state.story.count && !state.isCut;
    this.drawInput(L, a, L.a, m, k, 0, phase, done);
    this.drawInput(L, b, L.b, k, n, 1, phase, done);
    this.drawResult(L, c, L.c, m, n, done);
  }

  drawInput(L, array, at, rows, cols, which, phase, done) {
    const { lens, state } = this;
    const run = state.now;
    const hue = hueOf(run, array);
    const fits = which || cols * L.g > 56; // else C's name would be over it
    lens.name(at.x, at.y - 6, array.name, fits ? `${rows}\u00d7${cols}` : "", hue);
    const strip = state.story.whole(array.place);
    const now = done ? null : this.run.story.depth ? this.slice(array, strip, which) : this.shared ? state.story.window(phase, array.place) : this.inUse(array);
    const inside = (w, i, j) => w && i >= w[0] && j >= w[1] && i < w[2] && j < w[3];
    if (L.tiles) this.drawTiles(L, array, at, rows, cols, which, hue, strip, now, phase, done);
    else {
      const range = this.ranges[which];
      const fed = fedOf(state, array);
      drawSheet(lens.pen, {
        ...at, cell: L.g, rows, cols, hue, faint: true, digits: usesDigits(range, L.g), top: topOf(range),
        at: (i, j) => ({
          value: before(run, array, i * cols + j),
          tone: fed?.has(i * cols + j) ? 2 : !inside(strip, i, j) ? 0 : inside(now, i, j) && !fed ? 2 : 1,
        }),
      });
      for (let i = 0; i < rows; i++)
        lens.text(at.x - 5, at.y + i * L.g + L.g / 2 + 4, String(i), { size: 10, anchor: "end", fill: "faint", mono: true });
      if (now && this.shared) this.ghosts(L, at, now, rows, cols, which);
    }
    this.overArray(L, array, at, rows, cols, before, now, hue, which);
  }

  // Products of tensor cores that a warp has done, and how many there are.
  progress(warp) {
    const { state } = this;
    const steps = state.story.products[warp];
    return { done: steps.filter((step) => step < state.pos).length, all: steps.length };
  }

  // The part of an input's strip that the picked warp multiplies now.
  slice(array, strip, which) {
    const { depth } = this.run.story;
    const { done } = this.progress(this.state.warp);
    if (!strip || !done) return null;
    const [from, to] = [(done - 1) * depth, done * depth];
    return which ? [from, strip[1], to, strip[3]] : [strip[0], from, strip[2], to];
  }

  // The part of an input that the current beat touches, of a kernel without tiles.
  inUse(array) {
    const found = this.touched.get(array);
    if (!found?.reads.size) return null;
    const columns = array.shape[1];
    const rows = [...found.reads].map((i) => Math.floor(i / columns));
    const cols = [...found.reads].map((i) => i % columns);
    return [Math.min(...rows), Math.min(...cols), Math.max(...rows) + 1, Math.max(...cols) + 1];
  }

  drawTiles(L, array, at, rows, cols, which, hue, strip, now, phase, done) {
    const { lens, state } = this;
    const { g } = L;
    const c = colours();
    lens.rect(at.x, at.y, cols * g, rows * g, "page");
    const [high, wide] = which ? [L.deep, L.t.wide] : [L.t.high, L.deep];
    for (let y = 0; y < rows; y += high) lens.rect(at.x, at.y + y * g, cols * g, 1, "cell");
    for (let x = 0; x < cols; x += wide) lens.rect(at.x + x * g, at.y, 1, rows * g, "cell");
    lens.border(at.x + 0.5, at.y + 0.5, cols * g - 1, rows * g - 1, "cell");
    if (strip) {
      const [r0, c0, r1, c1] = strip;
      lens.border(at.x + c0 * g + 0.5, at.y + r0 * g + 0.5, (c1 - c0) * g - 1, (r1 - r0) * g - 1, c[`${hue}1`]);
    }
    for (let p = 0; p < state.story.phases.length && this.shared; p++) {
      const w = state.story.window(p, array.place);
      if (!w) continue;
      const tone = done || p < phase ? "0" : p === phase ? "1" : "";
      if (tone) lens.rect(at.x + w[1] * g + 1, at.y + w[0] * g + 1, (w[3] - w[1]) * g - 2, (w[2] - w[0]) * g - 2, `${hue}${tone}`);
      lens.border(at.x + w[1] * g + 0.75, at.y + w[0] * g + 0.75, (w[3] - w[1]) * g - 1.5, (w[2] - w[0]) * g - 1.5, `${hue}1`);
    }
    if (this.run.story.depth && strip) {
      const { depth } = this.run.story;
      const end = done ? Infinity : this.progress(state.warp).done * depth;
      const [r0, c0, r1, c1] = strip;
      const walked = which ? [r0, c0, Math.min(r1, end), c1] : [r0, c0, r1, Math.min(c1, end)];
      lens.rect(at.x + walked[1] * g, at.y + walked[0] * g, (walked[3] - walked[1]) * g, (walked[2] - walked[0]) * g, `${hue}0`);
      if (now) lens.rect(at.x + now[1] * g, at.y + now[0] * g, (now[3] - now[1]) * g, (now[2] - now[0]) * g, `${hue}1`);
      if (now) lens.frame(array.name + which, at.x + now[1] * g, at.y + now[0] * g, (now[3] - now[1]) * g, (now[2] - now[0]) * g, hue);
    } else if (!this.shared && strip) {
      const [r0, c0, r1, c1] = strip;
      lens.rect(at.x + c0 * g, at.y + r0 * g, (c1 - c0) * g, (r1 - r0) * g, `${hue}0`);
      if (now) lens.rect(at.x + now[1] * g, at.y + now[0] * g, Math.max(2, (now[3] - now[1]) * g), Math.max(2, (now[2] - now[0]) * g), `${hue}2`);
    }
    // The picked thread's row of the first and column of the second.
    const cell = this.elementOf(state.thread);
    if (!cell) return;
    if (!which && cell.row < rows) lens.rect(at.x, at.y + cell.row * g, cols * g, Math.max(1.5, Math.min(2.5, g)), `${hue}2`);
    if (which && cell.column < cols) lens.rect(at.x + cell.column * g, at.y, Math.max(1.5, Math.min(2.5, g)), rows * g, `${hue}2`);
  }

  // Cells of the tile that lie outside the array, where the kernel stores zeros.
  ghosts(L, at, now, rows, cols, which) {
    const high = which ? L.deep : L.t.high;
    const wide = which ? L.t.wide : L.deep;
    const ghost = (i, j) => (i >= rows || j >= cols ? { value: 0, tone: 0, state: "pad" } : null);
    const past = [now[0] + high - rows, now[1] + wide - cols];
    if (Math.max(...past) <= 0 || Math.max(...past) > GHOSTS) return;
    drawSheet(this.lens.pen, {
      x: at.x + now[1] * L.g, y: at.y + now[0] * L.g, cell: L.g, rows: high, cols: wide, hue: "a", digits: true, faint: true,
      at: (i, j) => ghost(now[0] + i, now[1] + j),
    });
  }

  // Frame of the tile, ring of the operand, and the pointer's spots.
  overArray(L, array, at, rows, cols, valueOf, now, hue, which) {
    const { lens, state } = this;
    if (now && this.shared) {
      const high = which === 1 ? L.deep : L.t.high;
      const wide = which === 1 ? L.t.wide : L.deep;
      const past = Math.max(now[0] + high - rows, now[1] + wide - cols) > GHOSTS;
      const [h, w] = L.tiles || past ? [now[2] - now[0], now[3] - now[1]] : [high, wide];
      lens.frame(array.name + which, at.x + now[1] * L.g, at.y + now[0] * L.g, w * L.g, h * L.g, hue);
    }
    for (const operand of this.operands) {
      const item = operand?.item;
      if (item?.place !== array.place || L.tiles) continue;
      const i = Math.floor(item.offset / array.size);
      lens.ring(at.x + (i % cols) * L.g, at.y + Math.floor(i / cols) * L.g, L.g, L.g);
    }
    lens.spot({
      ...at, w: cols * L.g, h: rows * L.g,
      say: (x, y) => sayElement(state, array, Math.floor(y / L.g) * cols + Math.floor(x / L.g)),
      grid: { rows, cols, cell: L.g, name: array.name },
    });
  }

  drawResult(L, array, at, rows, cols, done) {
    const { lens, state } = this;
    const run = state.now;
    const hue = hueOf(run, array);
    lens.name(at.x, at.y - 6, array.name, `${rows}\u00d7${cols}`, hue);
    const { t, g } = L;
    const range = this.ranges[2];
    const own = (i, j) => i >= t.row && j >= t.column && i < t.row + t.high && j < t.column + t.wide;
    if (L.tiles) {
      lens.rect(at.x, at.y, cols * g, rows * g, "page");
      for (const number of state.done) {
        const [bx, by] = run.blockAt(number);
        lens.rect(at.x + bx * t.wide * g, at.y + by * t.high * g, Math.min(t.wide, cols - bx * t.wide) * g, Math.min(t.high, rows - by * t.high) * g, `${hue}0`);
      }
      for (let y = 0; y < rows; y += t.high) lens.rect(at.x, at.y + y * g, cols * g, 1, "cell");
      for (let x = 0; x < cols; x += t.wide) lens.rect(at.x + x * g, at.y, 1, rows * g, "cell");
      lens.border(at.x + 0.5, at.y + 0.5, cols * g - 1, rows * g - 1, "cell");
      lens.rect(at.x + t.column * g, at.y + t.row * g, Math.min(t.wide, cols - t.column) * g, Math.min(t.high, rows - t.row) * g, done ? `${hue}1` : `${hue}0`);
    } else
      drawSheet(lens.pen, {
        ...at, cell: g, rows, cols, hue, digits: usesDigits(range, g), top: topOf(range),
        at: (i, j) => {
          const value = outputValue(state, array, i * cols + j);
          return { value: value === undefined ? null : value, tone: own(i, j) ? (value === undefined ? 1 : 2) : value === undefined ? 0 : 1 };
        },
      });
    if (!L.tiles)
      for (let y = 0; y <= rows; y += t.high) lens.rect(at.x, at.y + y * g - 0.5, cols * g, 1, "hatch");
    const w = Math.min(t.wide, cols - t.column) * g;
    lens.ring(at.x + t.column * g, at.y + t.row * g, w, Math.min(t.high, rows - t.row) * g, `${hue}2`, 2);
    lens.spot({
      ...at, w: cols * g, h: rows * g,
      say: (x, y) => sayElement(state, array, Math.floor(y / g) * cols + Math.floor(x / g)),
      pick: (x, y) => this.pickElement(Math.floor(y / g), Math.floor(x / g)),
      grid: { rows, cols, cell: g, name: array.name },
    });
  }

  // The block and thread that make an element of C.
  pickElement(row, column) {
    const { state, c } = this;
    pickOutput(state, c, row * c.shape[1] + column);
  }

  // Row and column of C that a thread of the block writes, or of its place if it writes none.
  elementOf(thread) {
    const { state, c, L } = this;
    const run = state.now;
    if (this.plain) return { row: L.t.row + Math.floor(thread / run.bx), column: L.t.column + (thread % run.bx) };
    const number = state.block * run.threads + thread;
    this.owned ??= new Map();
    const key = `${run.number}:${number}`;
    if (!this.owned.has(key)) this.owned.set(key, c.drawn ? run.pool.data(c.owner).findIndex((n) => Number(n) === number) : -1);
    const index = this.owned.get(key);
    return index < 0 ? null : { row: Math.floor(index / c.shape[1]), column: index % c.shape[1] };
  }
}
