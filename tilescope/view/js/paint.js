// Painting a grid. Every mark has a shape of its own, so that none is told by colour alone.
import { el } from "./dom.js";
import { brief } from "./format.js";

let known = null;

const NAMES = [
  "cell", "cell-line", "ink", "soft", "paper", "heat-low", "heat-high", "tone",
  "read", "write", "mine", "tile", "bad", "through", "decides",
];

// The theme's colours as they are now: what a canvas needs is worked out by an element.
export function colours() {
  if (known) return known;
  const probe = document.documentElement.appendChild(el("span", { class: "sr" }));
  const get = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const found = Object.fromEntries(NAMES.map((name) => [name, get(name)]));
  known = {
    ...found,
    line: found["cell-line"],
    low: rgb(found["heat-low"]),
    high: rgb(found["heat-high"]),
    mono: getComputedStyle(probe).getPropertyValue("--mono").trim(),
  };
  probe.remove();
  return known;
}

export function forgetColours() {
  known = null;
}

function rgb(text) {
  return text.match(/[\d.]+/g).slice(0, 3).map(Number);
}

function between(low, high, t) {
  return low.map((from, i) => Math.round(from + (high[i] - from) * t));
}

export function paint(grid, context, ratio, colour) {
  const { cells, cell, margin, top } = grid;
  const { rows, columns } = grid.about;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, grid.canvas.width, grid.canvas.height);
  context.imageSmoothingEnabled = cell * ratio < 1;
  context.drawImage(picture(grid, colour), margin, top, columns * cell, rows * cell);
  lines(grid, context, colour);
  if (margin) headers(grid, context, colour, rows, columns);
  for (const mark of cells.marks ?? []) draw(grid, context, colour, mark);
  if (cells.text && cell >= 13 * grid.scale) texts(grid, context, colour);
  if (grid.cursor >= 0) outline(context, ...corner(grid, grid.cursor), cell, colour.ink, 2, [3, 2]);
}

function corner(grid, i) {
  const { columns } = grid.about;
  return [grid.margin + (i % columns) * grid.cell, grid.top + Math.floor(i / columns) * grid.cell];
}

// The cells as a picture of one pixel each, to be enlarged; kept while the shades stay.
function picture(grid, colour) {
  const { shade, tones } = grid.cells;
  const numbers = grid.cells.text && grid.cell >= 13 * grid.scale;
  const wanted = shade ?? (numbers ? null : (tones ?? null));
  if (grid.picture && grid.pictureOf === wanted && grid.pictureColour === colour)
    return grid.picture;
  const { rows, columns, count } = grid.about;
  const made = grid.picture ?? document.createElement("canvas");
  made.width = columns;
  made.height = rows;
  const context = made.getContext("2d");
  const image = context.createImageData(columns, rows);
  const plain = rgb(colour.cell);
  const [low, high] = shade ? [colour.low, colour.high] : [plain, rgb(colour.tone)];
  const steps = Array.from({ length: 65 }, (_, k) => between(low, high, k / 64));
  for (let i = 0; i < count; i++) {
    const t = wanted ? wanted[i] : -1;
    const [r, g, b] = t < 0 ? plain : steps[Math.round(t * 64)];
    image.data[4 * i] = r;
    image.data[4 * i + 1] = g;
    image.data[4 * i + 2] = b;
    image.data[4 * i + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  Object.assign(grid, { picture: made, pictureOf: wanted, pictureColour: colour });
  return made;
}

function lines(grid, context, colour) {
  const { cell, margin, top } = grid;
  const { rows, columns } = grid.about;
  context.strokeStyle = colour.line;
  context.lineWidth = 1;
  context.strokeRect(margin + 0.5, top + 0.5, columns * cell, rows * cell);
  if (cell < 7) return;
  context.fillStyle = colour.line;
  for (let c = 0; c <= columns; c++) context.fillRect(margin + c * cell, top, 1, rows * cell + 1);
  for (let r = 0; r <= rows; r++) context.fillRect(margin, top + r * cell, columns * cell + 1, 1);
}

function headers(grid, context, colour, rows, columns) {
  const { cell, margin, top, scale } = grid;
  context.fillStyle = colour.soft;
  context.font = `${10 * scale}px ${colour.mono}`;
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  const every = cell >= 18 * scale ? 1 : cell >= 9 * scale ? 4 : 8;
  for (let c = 0; c < columns; c += every)
    context.fillText(String(c), margin + (c + 0.5) * cell, top - 4);
  context.textAlign = "right";
  context.textBaseline = "middle";
  const first = grid.about.strip ? columns : 1;
  for (let r = 0; r < rows; r += every)
    context.fillText(String(r * first), margin - 4, top + (r + 0.5) * cell);
}

function texts(grid, context, colour) {
  const { cell, cells, scale } = grid;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const size = cell >= 34 * scale ? 12 : cell >= 22 * scale ? 11 : cell >= 20 * scale ? 10 : 9;
  const room = Math.max(2, Math.floor((cell / scale - 2) / (0.61 * size)));
  context.font = `${size * scale}px ${colour.mono}`;
  const noted = new Set(
    cell >= 17 * scale && cell < 34 * scale ? (cells.marks ?? []).filter((m) => m.note).map((m) => m.i) : [],
  );
  context.fillStyle = colour.ink;
  for (let i = 0; i < grid.about.count; i++) {
    const text = noted.has(i) ? null : fitting(cells.text(i), room);
    if (text === null) continue;
    const [x, y] = corner(grid, i);
    context.fillText(text, x + cell / 2 + 0.5, y + cell / 2 + 1);
  }
}

const TIMES = "\u00d7";
const MORE = "\u2026"; // there is a value, and no room for it: a gap would say that there is none

// A cell's text, cut to a few digits.
function fitting(text, room) {
  if (text === null || text === undefined) return null;
  if (typeof text !== "number") {
    const short = text.length > room ? text.replace(TIMES, "") : text;
    return short.length > room ? MORE : short;
  }
  if (room < 4 && !Number.isInteger(text)) return small(text, room);
  const cut = brief(text, room);
  return cut.length > room || (room < 6 && cut.includes("e")) ? MORE : cut;
}

// One digit behind the point, without the zero in front of it.
function small(value, room) {
  const text = value.toFixed(1).replace(/^(-?)0\./, "$1.").replace("-", "\u2212");
  return text.length > room || Math.abs(value) < 0.05 ? MORE : text;
}

function outline(context, x, y, cell, colour, width, dash = []) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.setLineDash(dash);
  const inset = width / 2 + 0.5;
  if (cell > 2 * width)
    context.strokeRect(x + inset, y + inset, cell - 2 * inset + 1, cell - 2 * inset + 1);
  else {
    context.fillStyle = colour;
    context.fillRect(x, y, Math.max(cell, 1.5), Math.max(cell, 1.5));
  }
  context.setLineDash([]);
}

// mark: { i, kind, note }; the note is a short text in the corner.
function draw(grid, context, colour, { i, kind, note }) {
  const { cell } = grid;
  const [x, y] = corner(grid, i);
  const thick = cell >= 14 ? 2.5 : cell >= 7 ? 1.5 : 1;
  if (kind === "tile") {
    context.fillStyle = colour.tile;
    const gap = cell < 7 ? 0 : 1;
    context.fillRect(x + gap, y + gap, cell - gap, cell - gap);
  } else if (kind === "read") {
    outline(context, x, y, cell, colour.read, thick);
    if (cell >= 34 * grid.scale || (cell >= 20 && !note))
      dot(context, x + cell - 6, y + 6, colour.read);
  } else if (kind === "write") {
    outline(context, x, y, cell, colour.write, thick);
    if (cell >= 20) triangle(context, x + cell - 9, y + 3, colour.write);
  } else if (kind === "mine") {
    outline(context, x, y, cell, colour.mine, thick + (cell >= 14 ? 1 : 0.5));
    if (cell >= 16) outline(context, x + 4, y + 4, cell - 8, colour.mine, 1);
  } else if (kind === "through") {
    outline(context, x, y, cell, colour.through, thick, cell >= 8 ? [3, 2] : []);
  } else if (kind === "decides") {
    outline(context, x, y, cell, colour.decides, thick, cell >= 8 ? [1.5, 2.5] : []);
    if (cell >= 20 && !note) diamond(context, x + cell - 7, y + 7, colour.decides);
  } else if (kind === "fill" || kind === "off") {
    hatch(context, x, y, cell, colour.soft, kind === "off");
  } else if (kind === "bad") {
    outline(context, x, y, cell, colour.bad, thick + 1);
    cross(context, x, y, cell, colour.bad);
  }
  if (note && cell >= 17 * grid.scale) order(grid, context, colour, x, y, kind, note);
}

// A place in an order stands light on dark, so that nobody takes it for a count; in a small cell it
// stands alone, in the middle.
function order(grid, context, colour, x, y, kind, note) {
  const { cell, scale } = grid;
  context.font = `bold ${10 * scale}px ${colour.mono}`;
  const corner = cell >= 34 * scale;
  const wide = Math.min(cell - 3, context.measureText(note).width + 5 * scale);
  const high = 12 * scale;
  const [left, top] = corner ? [x + 3, y + 3] : [x + (cell - wide) / 2, y + (cell - high) / 2];
  context.fillStyle = colour[kind];
  context.beginPath();
  context.roundRect(left, top, wide, high, 3 * scale);
  context.fill();
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = colour.paper;
  context.fillText(note, left + wide / 2, top + high / 2 + 0.5, wide - 2);
}

function dot(context, x, y, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.arc(x, y, 2.5, 0, 7);
  context.fill();
}

function diamond(context, x, y, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x, y - 4);
  context.lineTo(x + 4, y);
  context.lineTo(x, y + 4);
  context.lineTo(x - 4, y);
  context.fill();
}

function triangle(context, x, y, colour) {
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + 6, y);
  context.lineTo(x + 3, y + 6);
  context.fill();
}

function cross(context, x, y, cell, colour) {
  if (cell < 20) return;
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x + cell - 9, y + 4);
  context.lineTo(x + cell - 4, y + 9);
  context.moveTo(x + cell - 4, y + 4);
  context.lineTo(x + cell - 9, y + 9);
  context.stroke();
}

function hatch(context, x, y, cell, colour, dense) {
  context.save();
  context.beginPath();
  context.rect(x + 1, y + 1, cell - 1, cell - 1);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.globalAlpha = 0.55;
  context.beginPath();
  const every = dense ? 4 : 6;
  for (let d = -cell; d < cell; d += every) {
    context.moveTo(x + d, y + cell);
    context.lineTo(x + d + cell, y);
  }
  context.stroke();
  context.restore();
}
