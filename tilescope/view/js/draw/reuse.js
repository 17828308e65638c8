// Reads of each element: one number if all counts are equal, else a map or a step plot.
import { el, replace, svg } from "./dom.js";
import { colours } from "./colours.js";
import { hueOf, hueOfVariable } from "../model/story.js";
import { count, inWords, plural } from "../model/format.js";

const MOST = 1 << 18;

export class Reuse {
  constructor(state) {
    this.state = state;
    this.lead = el("p", {});
    this.body = el("div", { class: "reuse" });
    this.root = el("section", { class: "part", id: "reuse", "aria-labelledby": "reuse-title" }, el("h2", { id: "reuse-title" }, "Reuse: how often each element is read"), this.lead, this.body);
    this.key = "";
  }

  draw() {
    const { state } = this;
    const run = state.now;
    const key = `${state.run}:${this.root.clientWidth}:${document.documentElement.dataset.theme}:${matchMedia("(prefers-color-scheme: dark)").matches}`;
    if (key === this.key) return;
    this.key = key;
    const found = [
      ...run.arrays.filter((array) => array.drawn && array.reads_total && array.count <= MOST).map((array) => global(run, array)),
      ...run.story.shared.map((one) => shared(run, one)),
    ];
    const even = found.filter((one) => one.low === one.high);
    const uneven = found.filter((one) => one.low !== one.high);
    replace(this.lead, lead(even, uneven));
    replace(this.body, even.length ? bars(even) : null, uneven.map((one) => this.map(one)));
  }

  map(one) {
    const room = Math.min(760, this.root.clientWidth || 700);
    const picture = one.shape.length > 1 && one.shape[one.shape.length - 1] > 1 ? plane(one, room) : plot(one, room);
    return el("div", { class: "uneven" }, el("h3", {}, el("span", { class: `hue-${one.hue}` }, one.name), el("small", {}, ` ${one.where}: ${one.low} to ${count(one.high)} times, ${+one.mean.toFixed(1)} on average`)), el("div", { class: "uneven-row" }, picture, legend(one)));
  }
}

function global(run, array) {
  const data = run.pool.data(array.reads);
  return counted(run.story.uses[array.place], { name: array.name, hue: hueOf(run, array), where: `from ${array.space} memory, the whole launch`, shape: array.shape, unit: array.unit, data, tile: [run.by, run.bx] });
}

function shared(run, one) {
  const variable = run.shared[one.variable];
  return counted(one.uses, { name: variable.name, hue: hueOfVariable(run, variable), where: `from shared memory, ${run.blockName(one.block)}`, shape: variable.shape, unit: variable.unit, data: run.pool.data(one.reads), tile: null });
}

function counted(uses, one) {
  return { ...one, ...uses, levels: uses.levels.map(([from, to, many]) => ({ from, to, many })) };
}

function lead(even, uneven) {
  const names = (list) => inWords(list.map((one) => one.name));
  if (!even.length && !uneven.length) return "Nothing is read.";
  if (!uneven.length) return `Every element of ${names(even)} is read equally often, so there is nothing to paint: numbers say it.`;
  if (!even.length) return `Elements of ${names(uneven)} are read unequally often: lightness says how much.`;
  return `Every element of ${names(even)} is read equally often: numbers say it. Elements of ${names(uneven)} are not: lightness says how much.`;
}

function bars(even) {
  const top = Math.max(...even.map((one) => one.high), 1);
  return el("div", { class: "bars" }, even.map((one) => el("div", { class: "bar-row" },
    el("span", {}, el("b", { class: `hue-${one.hue}` }, one.name), el("small", {}, ` ${one.where}`)),
    el("span", { class: "bar-line" }, el("i", { style: `width: ${Math.max(0.5, (60 * one.high) / top)}%; background: var(--${one.hue}1)` }), el("b", { class: "number" }, `${count(one.high)}\u00d7`)))));
}

function shade(one, level) {
  const n = one.levels.length;
  if (n <= 3) return colours()[`${one.hue}${n === 1 ? 1 : n === 2 ? level * 2 : level}`];
  return mix(colours()[`${one.hue}0`], colours()[`${one.hue}2`], level / (n - 1));
}

function mix(a, b, share) {
  const parts = (text) => (text.length === 4 ? [...text.slice(1)].map((c) => parseInt(c + c, 16)) : [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16)));
  const [x, y] = [parts(a), parts(b)];
  return `rgb(${x.map((v, i) => Math.round(v + (y[i] - v) * share)).join(" ")})`;
}

function levelOf(one, n) {
  return one.levels.findIndex((level) => n <= level.to);
}

function plane(one, room) {
  const cols = one.shape[one.shape.length - 1];
  const rows = one.data.length / cols;
  const cell = Math.max(0.5, Math.min(12, (Math.min(room, 520) - 10) / cols, 420 / rows));
  const canvas = el("canvas", { role: "img", "aria-label": `${one.name}: reads of each element` });
  const dense = Math.min(2, window.devicePixelRatio || 1);
  canvas.width = Math.ceil(cols * cell * dense);
  canvas.height = Math.ceil(rows * cell * dense);
  canvas.style.width = `${cols * cell}px`;
  canvas.style.height = `${rows * cell}px`;
  const pen = canvas.getContext("2d");
  pen.scale(dense, dense);
  for (let i = 0; i < one.data.length; i++) {
    pen.fillStyle = shade(one, levelOf(one, Number(one.data[i])));
    pen.fillRect((i % cols) * cell, Math.floor(i / cols) * cell, cell + 0.3, cell + 0.3);
  }
  if (one.tile && cell * Math.min(...one.tile) > 6) {
    pen.fillStyle = colours().ink;
    pen.globalAlpha = 0.3;
    for (let y = 0; y <= rows; y += one.tile[0]) pen.fillRect(0, y * cell - 0.5, cols * cell, 1);
    for (let x = 0; x <= cols; x += one.tile[1]) pen.fillRect(x * cell - 0.5, 0, 1, rows * cell);
  }
  return canvas;
}

function plot(one, room) {
  const [wide, high] = [Math.max(200, room - 190), 64];
  const n = one.data.length;
  const each = Math.max(1, Math.ceil(n / wide)); // elements a column: the most read of them counts
  const columns = Math.ceil(n / each);
  const paths = new Map();
  for (let i = 0; i < columns; i++) {
    let most = 0;
    for (let k = i * each; k < Math.min(n, (i + 1) * each); k++) most = Math.max(most, Number(one.data[k]));
    const h = (most / one.high) * high;
    const level = levelOf(one, most);
    paths.set(level, `${paths.get(level) ?? ""}M${((i / columns) * wide).toFixed(2)} ${high}v${(-h).toFixed(1)}h${(wide / columns + 0.3).toFixed(2)}v${h.toFixed(1)}z`);
  }
  return svg("svg", { width: wide, height: high + 16, viewBox: `0 0 ${wide} ${high + 16}`, role: "img", "aria-label": `${one.name}: reads of each element` },
    [...paths].map(([level, d]) => svg("path", { d, style: `fill: ${shade(one, level)}` })),
    svg("text", { x: 0, y: high + 13, class: "axis" }, "0"),
    svg("text", { x: wide, y: high + 13, class: "axis", "text-anchor": "end" }, String(n - 1)));
}

function legend(one) {
  return el("ul", { class: "levels" }, one.levels.map((level, i) => el("li", {},
    el("i", { style: `background: ${shade(one, i)}` }),
    el("b", {}, level.from === level.to ? `${count(level.from)}\u00d7` : `${count(level.from)} to ${count(level.to)}\u00d7`),
    el("span", { class: "mute" }, ` ${plural(level.many, one.unit)}`))));
}
