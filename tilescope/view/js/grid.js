// A grid of cells on a canvas: a matrix, a strip, shared memory, the threads of a block.
import { el } from "./dom.js";
import { colours, paint } from "./paint.js";

// Pixels of a rem on an ordinary screen; large screens have more (css/2-page.css).
const UNIT = 15;

const tip = el("div", { id: "tip", "aria-hidden": "true", hidden: true });

document.addEventListener("scroll", () => (tip.hidden = true), { capture: true, passive: true });

export class Grid {
  // about: { name, note, rows, columns, count, describe(i) -> lines, pick(i), label(i), most,
  // cell(scale), margin(scale): in pixels, where several grids have to agree on them }
  constructor(about) {
    this.about = about;
    this.cursor = -1;
    this.rest = 0; // where the cursor was when the focus left
    this.cells = { shade: null, text: null, marks: [] };
    this.canvas = el("canvas", {
      tabindex: 0,
      role: "application",
      "aria-label": `${about.name}, ${about.rows} rows of ${about.columns}. Arrow keys move, Enter picks.`,
    });
    this.canvas.tilescopeGrid = this;
    this.live = el("span", { class: "sr", "aria-live": "polite" });
    this.caption = el(
      "figcaption",
      {},
      el("strong", {}, about.name),
      " ",
      el("span", {}, about.note ?? ""),
    );
    this.box = el("div", { class: "canvas" }, this.canvas);
    this.root = el("figure", { class: "grid" }, this.caption, this.box, this.live);
    const { columns, most = 44 } = about;
    // A short strip takes the whole width: there its values can be read.
    const line = about.strip && columns > 16 && about.count <= 512;
    const least = line
      ? 700
      : (columns <= 8 ? 140 : columns <= 16 ? 230 : columns <= 32 ? 300 : 380) * (about.small ?? 1);
    this.line = line;
    this.least = Math.min(least, columns * most + 30) / UNIT;
    const widest = about.strip && !line ? Math.min(columns * most, 600) : columns * most;
    if (!about.cell) this.root.style.maxWidth = `max(${(widest + 34) / UNIT}rem, 14rem)`;
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", (event) => {
      if (event.pointerType !== "touch") this.leave(); // a finger lifted is no farewell
    });
    // Before the focus comes: the keys go on from the cell that was clicked, and a tap is a hover.
    this.canvas.addEventListener("pointerdown", (event) => {
      const i = this.at(event);
      if (i >= 0) this.cursor = i;
      this.hover(event);
    });
    this.canvas.addEventListener("click", (event) => this.choose(this.at(event)));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("focus", () => this.move(this.cursor < 0 ? this.rest : this.cursor));
    this.canvas.addEventListener("blur", () => {
      this.rest = Math.max(0, this.cursor);
      this.cursor = -1;
      this.leave();
      this.draw();
    });
    new ResizeObserver(() => this.resize()).observe(this.box);
  }

  set(cells) {
    this.cells = cells;
    this.draw();
  }

  resize() {
    if (this.box.clientWidth && this.box.clientWidth !== this.width) this.draw();
  }

  layout() {
    const { rows, columns, most = 44 } = this.about;
    this.width = this.box.clientWidth || 300;
    const scale = (this.scale =
      parseFloat(getComputedStyle(document.documentElement).fontSize) / UNIT);
    if (this.about.cell) {
      this.cell = this.about.cell(scale);
      this.margin = this.cell >= 9 * scale ? this.about.margin(scale) : 0;
      return this.extent(scale);
    }
    const width = this.width - 7;
    let margin = 0;
    let cell = width / columns;
    if (cell >= 12 * scale) {
      margin = (9 + 7 * String(Math.max(rows, columns) - 1).length) * scale;
      cell = (width - margin) / columns;
    }
    this.margin = margin;
    this.cell = Math.min(Math.round(most * scale), cell >= 4 ? Math.floor(cell) : cell);
    return this.extent(scale);
  }

  extent(scale) {
    const { rows, columns } = this.about;
    this.top = this.margin ? Math.round(15 * scale) : 0;
    return { w: this.margin + this.cell * columns + 1, h: this.top + this.cell * rows + 1 };
  }

  draw() {
    if (!this.box.isConnected || !this.box.clientWidth) return;
    const { w, h } = this.layout();
    const ratio = window.devicePixelRatio || 1;
    const canvas = this.canvas;
    if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
      canvas.width = Math.round(w * ratio);
      canvas.height = Math.round(h * ratio);
      canvas.style.width = `${w}px`;
      canvas.style.height = `${h}px`;
    }
    paint(this, canvas.getContext("2d"), ratio, colours());
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const { rows, columns, count } = this.about;
    const column = Math.floor((event.clientX - box.left - this.margin) / this.cell);
    const row = Math.floor((event.clientY - box.top - this.top) / this.cell);
    const i = row * columns + column;
    return row >= 0 && column >= 0 && row < rows && column < columns && i < count ? i : -1;
  }

  hover(event) {
    const i = this.at(event);
    if (i < 0) return this.leave();
    if (i === this.hovered) return this.place(event);
    this.hovered = i;
    tip.replaceChildren(...this.lines(i).map((line, n) => el(n ? "div" : "strong", {}, line)));
    if (!tip.isConnected) document.body.append(tip);
    tip.hidden = false;
    return this.place(event);
  }

  place(event) {
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    const below = event.clientY + 18 + tip.offsetHeight < window.innerHeight;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, room))}px`;
    tip.style.top = `${below ? event.clientY + 18 : event.clientY - tip.offsetHeight - 12}px`;
  }

  leave() {
    this.hovered = -1;
    tip.hidden = true;
  }

  lines(i) {
    return this.about.describe(i);
  }

  choose(i) {
    if (i >= 0 && this.about.pick) this.about.pick(i);
  }

  move(i) {
    this.cursor = Math.max(0, Math.min(this.about.count - 1, i));
    this.live.textContent = this.lines(this.cursor).join(". ");
    this.draw();
  }

  key(event) {
    const steps = {
      ArrowLeft: -1,
      ArrowRight: 1,
      ArrowUp: -this.about.columns,
      ArrowDown: this.about.columns,
    };
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in steps) {
      const next = this.cursor + steps[event.key];
      if (next >= 0 && next < this.about.count) this.move(next);
    } else if (event.key === "Enter") this.choose(this.cursor);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

// Grids side by side, strips that take the whole width in boxes of their own.
export function boxes(grids) {
  const groups = [];
  for (const grid of grids) {
    const last = groups.at(-1);
    if (last && last[0].line === grid.line) last.push(grid);
    else groups.push([grid]);
  }
  return groups.map((group) => sideBySide(group, { class: group[0].line ? "grids line" : "grids" }));
}

// Grids side by side, all columns equally wide.
function sideBySide(grids, attributes) {
  const box = el(
    "div",
    attributes,
    grids.map((grid) => grid.root),
  );
  box.style.setProperty("--least", `${Math.max(8, ...grids.map((grid) => grid.least))}rem`);
  return box;
}

// Rows and columns in which to draw an array: two-dimensional as it is; others, and those of a few
// long rows, as strips.
export function extent(shape, count) {
  const last = Math.max(1, shape.length > 1 ? shape[shape.length - 1] : 0);
  const rows = Math.max(1, Math.ceil(count / last));
  if (shape.length > 1 && last <= 2048 && !(last > 128 && last > 16 * rows))
    return { rows, columns: last, strip: false };
  const columns = Math.max(1, Math.min(count, count > 4096 ? 256 : 32));
  return { rows: Math.max(1, Math.ceil(count / columns)), columns, strip: true };
}
