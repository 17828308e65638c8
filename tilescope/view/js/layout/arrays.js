// Layout of all other kernels: arrays with the elements that block and beat access, shared arrays in
// their true extents, and the block's part of the output.
import { Lens, widthOfName } from "../draw/lens.js";
import { colours } from "../draw/colours.js";
import { drawBars, drawSheet, topOf, usesDigits } from "../draw/sheet.js";
import { hueOf, hueOfVariable } from "../model/story.js";
import { threadOf } from "../model/thread.js";
import { fedOf, pickOutput } from "./pick.js";
import { sayElement } from "./say.js";
import { before, outputValue, sharedValue, touched } from "./values.js";
import { capital, count, plural } from "../model/format.js";

const [GRID, LARGE, MOST] = [364, 12, 64];
const THIN = 16; // rows a column from which a matrix is drawn as a strip
const FOLD = 32; // columns of what is contiguous but too narrow or too flat to show as it is

export class Arrays {
  constructor(state) {
    this.state = state;
    this.lens = new Lens("Arrays in global memory, and the block's part of them");
    this.root = this.lens.root;
  }

  draw(room) {
    const { state, lens } = this;
    const run = state.now;
    this.narrow = room < 560;
    this.touched = state.current ? touched(run, state.blockNow, state.current, state.warp) : new Map();
    const last = threadOf(state.blockNow, state.thread, state.event).items.filter((item) => item.step <= state.event && item.w.access);
    const from = state.current ? state.blockNow.steps[state.current.from] : Infinity;
    this.mine = last.filter((item) => item.step >= from);
    const { grid, high } = this.place(run);
    const shared = this.blockParts(run);
    const wide = this.narrow ? Math.min(room, 340) : GRID;
    const block = { x: this.narrow ? 4 : wide + 64, y: this.narrow ? high + 30 : 0 };
    let y = block.y + (this.narrow ? 26 : 60);
    let right = block.x + 150;
    let [x, low] = [block.x, y];
    for (const part of shared) {
      const each = Math.max(part.cols * part.cell, 130);
      const named = Math.min(300, Math.max(each, widthOfName(part.name, "")));
      if (x > block.x && x + named > block.x + 300) [x, y] = [block.x, low];
      Object.assign(part, { x, y: y + 20, named });
      low = Math.max(low, part.y + part.rows * part.cell + 8);
      right = Math.max(right, x + named);
      x += named + 20;
    }
    y = low;
    const W = this.narrow ? Math.min(room, 340) : shared.length ? right + 14 : wide + 20;
    const H = Math.max(high + 8, y + 8, this.narrow || !shared.length ? 0 : 280);
    lens.begin(W, H, room);
    if (!this.narrow && shared.length) {
      lens.pen.fillStyle = colours().sunk;
      lens.pen.beginPath();
      lens.pen.roundRect(block.x - 14, 0, W - block.x + 14, H, 10);
      lens.pen.fill();
      const out = grid.find((part) => part.array.writes_total && part.window);
      if (out) {
        lens.pen.beginPath();
        lens.pen.moveTo(out.right, out.top);
        lens.pen.lineTo(block.x - 13, 8);
        lens.pen.lineTo(block.x - 13, H - 8);
        lens.pen.lineTo(out.right, out.bottom);
        lens.pen.fill();
      }
    }
    for (const part of grid) this.drawGlobal(part);
    if (shared.length) lens.text(block.x, block.y + 24, capital(run.blockName(state.block)), { size: 14, weight: 700 });
    for (const part of shared) this.drawPart(part);
    lens.end();
  }

  // Places of the global arrays: 2-D ones side by side, others as strips.
  place(run) {
    const { story } = this.state;
    const rank = (array) => (array.writes_total ? (array.reads_total ? 1 : 2) : 0);
    const room = this.narrow ? 320 : GRID;
    const grid = [];
    const flat = (array) => array.shape.length < 2 || array.shape[array.shape.length - 1] * THIN <= array.count / array.shape[array.shape.length - 1];
    const arrays = run.arrays.filter((array) => array.drawn && (array.reads_total || array.writes_total)).sort((a, b) => flat(a) - flat(b) || rank(a) - rank(b)).slice(0, 6);
    const planes = arrays.filter((array) => !flat(array));
    const columns = planes.reduce((sum, array) => sum + array.shape[array.shape.length - 1], 0);
    const beside = (room - 22 * (planes.length - 1)) / columns; // pixels of a cell if all stand in one row
    let [x, y, tall] = [0, this.narrow ? 4 : 46, 0];
    for (const array of arrays) {
      const cols = flat(array) ? array.count : array.shape[array.shape.length - 1];
      const rows = Math.ceil(array.count / cols);
      const plane = rows > 1 && rows * 24 > cols;
      const size = array.shape.length > 1 ? array.shape.join("\u00d7") : array.unit === "byte" ? plural(array.count, "byte") : count(array.count);
      const written = array.writes_total > 0 ? 1 : 0;
      const window = story.whole(array.place, written) ?? story.whole(array.place, 1 - written);
      if (plane) {
        const cell = Math.min(27, Math.max(Math.min(Math.min(room * 0.46, 180) / cols, 190 / rows), Math.min(beside, 290 / rows)));
        const named = Math.max(cols * cell, Math.min(room * 0.46, widthOfName(array.name, size)));
        if (x && x + named > room) [x, y, tall] = [0, y + tall, 0];
        grid.push({ array, size, window, rows, cols, cell, x, y: y + 22, plane, named });
        tall = Math.max(tall, rows * cell + 40);
        x += named + 22;
      } else {
        if (x) [x, y, tall] = [0, y + tall, 0];
        grid.push({ array, size, window, rows: 1, cols: array.count, cell: room / array.count, x: 0, y: y + 22, plane, tall: 30, named: room });
        y += 66;
      }
    }
    for (const part of grid) {
      if (!part.window) continue;
      const [r0, c0, r1, c1] = part.window;
      if (part.plane) Object.assign(part, { right: part.x + c1 * part.cell, top: part.y + r0 * part.cell, bottom: part.y + r1 * part.cell });
      else Object.assign(part, { right: part.x + bounds(part.window, part.array)[1] * part.cell, top: part.y, bottom: part.y + part.tall });
    }
    return { grid, high: y + tall };
  }

  drawGlobal(part) {
    const { lens, state } = this;
    const run = state.now;
    const { array, x, y, rows, cols, cell } = part;
    const hue = hueOf(run, array);
    lens.name(x, y - 6, array.name, part.size, hue, part.named);
    const range = run.story.ranges[array.place];
    const used = state.fed ? fedUse(state, array) : this.touched.get(array);
    const valueAt = (i) => (array.writes_total ? outputValue(state, array, i) : before(run, array, i));
    if (part.plane) this.plane(part, hue, range, used, valueAt);
    else {
      const each = Math.max(1, Math.ceil(cols / (GRID * 2)));
      const c = colours();
      const [lo, hi] = part.window ? bounds(part.window, array) : [0, 0];
      if (part.window) lens.rect(x + lo * cell, y, Math.max(1, (hi - lo) * cell), part.tall, `${hue}0`);
      drawBars(lens.pen, {
        x, y, wide: cols * cell, high: part.tall, count: Math.ceil(cols / each), top: topOf(range),
        value: (k) => valueAt(k * each),
        colour: (k) => (used?.reads.has(k * each) || used?.writes.has(k * each) ? c[`${hue}2`] : k * each >= lo && k * each < hi ? c[`${hue}1`] : c.hatch),
      });
      lens.border(x + 0.5, y + 0.5, cols * cell - 1, part.tall - 1, "line");
    }
    for (const item of this.mine) {
      if (item.place !== array.place) continue;
      const i = Math.floor(item.offset / array.size);
      const tall = part.plane ? cell : part.tall;
      const size = Math.max(cell, 3);
      lens.ring(x + (i % cols) * cell - (size - cell) / 2, y + (part.plane ? Math.floor(i / cols) * cell : 0) - (part.plane ? (size - cell) / 2 : 2), size, part.plane ? Math.max(tall, 3) : tall + 4, "ink", cell < 14 ? 2 : 2.5);
    }
    lens.spot({
      x, y, w: cols * cell, h: part.plane ? rows * cell : part.tall,
      say: (px, py) => sayElement(state, array, (part.plane ? Math.floor(py / cell) * cols : 0) + Math.floor(px / cell)),
      pick: (px, py) => this.pick(array, (part.plane ? Math.floor(py / cell) * cols : 0) + Math.floor(px / cell)),
      grid: { rows, cols, cell, tall: part.plane ? cell : part.tall, name: array.name },
    });
  }

  plane(part, hue, range, used, valueAt) {
    const { lens, state } = this;
    const { array, x, y, rows, cols, cell, window } = part;
    const inside = (i, j) => window && i >= window[0] && j >= window[1] && i < window[2] && j < window[3];
    if (cell >= LARGE)
      drawSheet(lens.pen, {
        x, y, cell, rows, cols, hue, faint: true, digits: usesDigits(range, cell), top: topOf(range),
        at: (i, j) => {
          const index = i * cols + j;
          const value = valueAt(index);
          const now = used?.reads.has(index) || used?.writes.has(index);
          return { value: value === undefined ? null : value, tone: now ? 2 : inside(i, j) ? 1 : 0 };
        },
      });
    else {
      lens.rect(x, y, cols * cell, rows * cell, "page");
      if (window) {
        const [high, wide] = [window[2] - window[0], window[3] - window[1]];
        for (let i = window[0] % high; i < rows && high * cell > 5; i += high) lens.rect(x, y + i * cell, cols * cell, 1, "cell");
        for (let j = window[1] % wide; j < cols && wide * cell > 5; j += wide) lens.rect(x + j * cell, y, 1, rows * cell, "cell");
        lens.rect(x + window[1] * cell, y + window[0] * cell, wide * cell, high * cell, `${hue}0`);
      }
      for (const block of array.writes_total ? state.done : [])
        if (block !== state.block && window) this.doneBlock(part, hue, block);
      for (const index of [...(used?.reads ?? []), ...(used?.writes ?? [])])
        lens.rect(x + (index % cols) * cell, y + Math.floor(index / cols) * cell, Math.max(1, cell), Math.max(1, cell), `${hue}2`);
      lens.border(x + 0.5, y + 0.5, cols * cell - 1, rows * cell - 1, "line");
    }
    if (!window) return;
    const [r0, c0, r1, c1] = window;
    lens.frame(array.name, x + c0 * cell, y + r0 * cell, Math.max(3, (c1 - c0) * cell), Math.max(3, (r1 - r0) * cell), hue);
  }

  doneBlock(part, hue, block) {
    const other = this.state.now.story.blocks.find((one) => one.block === block);
    for (const w of other?.windows ?? [])
      if (w[1] === part.array.place && w[2]) this.lens.rect(part.x + w[4] * part.cell, part.y + w[3] * part.cell, (w[6] - w[4]) * part.cell, (w[5] - w[3]) * part.cell, `${hue}0`);
  }

  // Shared arrays, and the block's part of its outputs, with cells as large as there is room.
  blockParts(run) {
    const { story } = this.state;
    const parts = [];
    const room = this.narrow ? 300 : 300;
    const sized = (rows, cols, many) => Math.max(2, Math.min(40, room / cols, (many > 1 ? 130 : 250) / rows));
    const used = run.shared.filter((v) => v.bytes / v.size <= 65536).slice(0, 3);
    for (const variable of used) {
      const total = Math.floor(variable.bytes / variable.size);
      const cols = this.columnsOf(run, variable, total);
      const rows = Math.min(MOST, Math.ceil(total / cols));
      parts.push({ variable, name: variable.name, size: variable.shape.join("\u00d7"), rows, cols: Math.min(cols, 128), stride: cols, first: 0, total, cell: sized(rows, Math.min(cols, 128), used.length + 1) });
    }
    for (const array of run.arrays.filter((one) => one.drawn && one.writes_total).slice(0, 1)) {
      const w = story.whole(array.place, 1);
      if (!w || array.shape.length < 2) continue;
      const stride = array.shape[array.shape.length - 1];
      const [tall, wide] = [w[2] - w[0], w[3] - w[1]];
      const total = tall * wide;
      const folds = (tall === 1 || wide === stride) && (wide > 64 || wide * THIN <= tall) && total > FOLD;
      const [rows, cols] = folds ? [Math.min(MOST, Math.ceil(total / FOLD)), FOLD] : [Math.min(MOST, tall), Math.min(128, wide)];
      parts.push({ array, name: array.name, size: "this block\u2019s part", rows, cols, stride: folds ? FOLD : stride, first: w[0] * stride + w[1], total: folds ? total : Infinity, cell: sized(rows, cols, used.length + 1) });
    }
    return parts;
  }

  // Columns of a shared variable: its own, those of the array that is copied into it, or 32.
  columnsOf(run, variable, total) {
    const last = variable.shape[variable.shape.length - 1];
    const source = run.byPlace.get(run.story.sources[run.shared.indexOf(variable)]);
    const columns = source?.shape.length > 1 ? source.shape[source.shape.length - 1] : 0;
    if (variable.shape.length > 1 && last <= 128) return last;
    return columns > 1 && columns <= 128 && last % columns === 0 && columns * THIN > total / columns ? columns : Math.min(FOLD, total);
  }

  drawPart(part) {
    const { lens, state } = this;
    const run = state.now;
    const { x, y, rows, cols, cell, variable, array } = part;
    const hue = variable ? hueOfVariable(run, variable) : hueOf(run, array);
    const item = variable ?? array;
    const used = this.touched.get(item);
    const indexOf = (i, j) => part.first + i * part.stride + j;
    const values = (index) => (variable ? sharedValue(state.blockNow, variable, index, state.event) : { value: outputValue(state, array, index) });
    lens.name(x, y - 6, part.name, part.size, hue, part.named + 16);
    const source = variable ? run.story.sources[run.shared.indexOf(variable)] : array.place;
    const range = source >= 0 ? run.story.ranges[source] : this.rangeNow(part, indexOf, values);
    drawSheet(lens.pen, {
      x, y, cell, rows, cols, hue, digits: usesDigits(range, cell), top: topOf(range),
      at: (i, j) => {
        const index = indexOf(i, j);
        if (index - part.first >= part.total) return null;
        const found = values(index);
        const value = found?.value;
        const hot = used?.reads.has(index);
        const arrives = used?.writes.has(index);
        return { value: found ? value : undefined, tone: value === undefined || !found ? 0 : arrives ? 3 : hot ? 2 : 1, state: found?.write?.filled ? "pad" : "" };
      },
    });
    for (const one of this.mine) {
      const at = run.element(one.place, one.offset);
      if ((at.variable ?? at.array) !== item) continue;
      for (let i = 0; i < rows; i++)
        for (let j = 0; j < cols; j++) if (indexOf(i, j) === at.index) lens.ring(x + j * cell, y + i * cell, cell, cell, "ink", cell < 14 ? 2 : 2.5);
    }
    lens.spot({
      x, y, w: cols * cell, h: rows * cell,
      say: (px, py) => sayElement(state, item, indexOf(Math.floor(py / cell), Math.floor(px / cell))),
      pick: array ? (px, py) => this.pick(array, indexOf(Math.floor(py / cell), Math.floor(px / cell))) : null,
      grid: { rows, cols, cell, name: item.name },
    });
  }

  rangeNow(part, indexOf, values) {
    let [low, high, whole] = [0, 0, true];
    for (let i = 0; i < part.rows; i++)
      for (let j = 0; j < part.cols; j++) {
        const value = values(indexOf(i, j))?.value;
        if (!Number.isFinite(value)) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
        whole &&= Number.isInteger(value);
      }
    return { low, high, whole };
  }

  pick(array, index) {
    const { state } = this;
    pickOutput(state, array, index);
  }
}

// The elements behind the picked one, drawn as if they were read now.
function fedUse(state, array) {
  const fed = fedOf(state, array);
  return fed ? { reads: new Set(fed.keys()), writes: new Set() } : null;
}

function bounds([r0, c0, r1, c1], array) {
  const cols = array.shape.length > 1 ? array.shape[array.shape.length - 1] : 0;
  return cols ? [r0 * cols + c0, (r1 - 1) * cols + c1] : [c0, c1];
}
