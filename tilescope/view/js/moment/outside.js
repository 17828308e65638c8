// The moment of an access outside its array: the array's end magnified, with the threads of the warp
// above the elements that they access.
import { el, replace } from "../draw/dom.js";
import { colours } from "../draw/colours.js";
import { drawSheet, topOf, usesDigits } from "../draw/sheet.js";
import { full } from "../draw/numbers.js";
import { capital, count, plural } from "../model/format.js";
import { hueOf, hueOfVariable } from "../model/story.js";
import { Moment } from "./moment.js";
import { sayElement } from "../layout/say.js";
import { before, outputValue, sharedValue } from "../layout/values.js";

const [AROUND, GHOSTS, INSIDE] = [24, 3, 6];
const GAP = -Infinity; // stands for elements that are not drawn

export class Outside extends Moment {
  constructor(state) {
    super(state, "The end of the array at the moment of the access");
  }

  draw(room) {
    const { state, lens, moment: m } = this;
    const run = state.now;
    const variable = m.place < 0 ? run.shared[m.variable] : null;
    const item = variable ?? run.byPlace.get(m.place);
    const hue = variable ? hueOfVariable(run, variable) : hueOf(run, item);
    const total = item.shape.reduce((a, b) => a * b, 1);
    const shown = elements(m, total);
    const narrow = room < 560;
    const wide = Math.min(room, 860);
    const cell = Math.min(30, (wide - 4) / shown.length);
    const left = 2;
    const [top, zoom] = [24, 176];
    lens.begin(wide, zoom + cell + 84, room);
    lens.name(0, 14, item.name, `${plural(total, item.unit)} in ${item.space} memory`, hue);
    const x = (k) => left + k * cell;
    const first = shown.findIndex((e) => e >= 0 && e < total);
    const last = shown.findLastIndex((e) => e >= 0 && e < total);
    this.locator(hue, top, wide, total, shown[first], shown[last], [x(first), x(last + 1)], zoom);
    const values = (e) => (variable ? sharedValue(state.blockNow, variable, e, state.event)?.value : item.writes_total ? outputValue(state, item, e) : before(run, item, e));
    const range = run.story.ranges[variable ? run.story.sources[m.variable] : m.place];
    const touched = new Set(m.cells.map(([, e]) => e));
    drawSheet(lens.pen, {
      x: left, y: zoom, cell, rows: 1, cols: shown.length, hue, digits: range ? usesDigits(range, cell) : false, top: range ? topOf(range) : 1,
      at: (_, k) => (shown[k] >= 0 && shown[k] < total ? { value: values(shown[k]), tone: touched.has(shown[k]) ? 2 : 1 } : null),
    });
    shown.forEach((e, k) => {
      if (e === GAP) lens.text(x(k) + cell / 2, zoom + cell / 2 + 4, "\u00b7\u00b7\u00b7", { size: 14, anchor: "middle", fill: "mute" });
      else if (e < 0 || e >= total) lens.shape(`M${x(k) + 1.5} ${zoom + 1.5}h${cell - 3}v${cell - 3}h${3 - cell}z`, `fill: ${touched.has(e) ? "var(--x0)" : "none"}; stroke: var(--${touched.has(e) ? "x2" : "faint"}); stroke-dasharray: 3 2; stroke-width: ${touched.has(e) ? 1.5 : 1}`);
    });
    const edge = m.element < 0 ? x(first) : x(last + 1);
    lens.shape(`M${edge} ${zoom - 8}v${cell + 16}`, "fill: none; stroke: var(--ink); stroke-width: 2");
    lens.spot({
      x: left, y: zoom, w: shown.length * cell, h: cell, say: (px) => sayElement(state, item, shown[Math.floor(px / cell)]),
      grid: { rows: 1, cols: shown.length, cell, name: item.name },
    });
    this.threads(hue, shown, cell, x, zoom, wide, total);
    this.callout(shown, cell, x, zoom, wide, total, narrow);
    lens.end();
    this.heading(`${m.element < 0 ? "Start" : "End"} of ${item.name}`, el("small", {}, ` at step ${m.step} of the block`));
    this.drawPanel(item, total);
  }

  // The whole array, and the lens from the elements that are magnified.
  locator(hue, y, wide, total, from, to, [x0, x1], zoom) {
    const { lens } = this;
    const [a, b] = [(from / total) * (wide - 4) + 2, ((to + 1) / total) * (wide - 4) + 2];
    lens.beneath(`M${a} ${y + 14}L${x0} ${zoom - 92}H${x1}L${b} ${y + 14}z`, "fill: var(--sunk)");
    lens.rect(2, y, wide - 4, 12, "cell");
    lens.rect(a, y, Math.max(2, b - a), 12, `${hue}1`);
  }

  threads(hue, shown, cell, x, zoom, wide, total) {
    const { lens, moment: m } = this;
    const c = colours();
    const lanes = [...new Set(m.cells.map(([thread]) => thread))];
    const each = Math.min(cell, (wide - 4) / Math.max(1, lanes.length));
    const y = zoom - 70;
    const center = (shown.length * cell - lanes.length * each) / 2;
    const own = m.cells.map(([thread, e]) => [lanes.indexOf(thread), shown.indexOf(e), e, thread]).filter(([, k]) => k >= 0);
    const shift = own.length ? own.reduce((sum, [lane, k]) => sum + x(k) - lane * each, 0) / own.length : center;
    const x0 = Math.max(2, Math.min(wide - 2 - lanes.length * each, shift)); // above its elements
    lens.text(x0, y - 7, `warp ${m.thread >> 5}, ${plural(lanes.length, "thread")}`, { size: 12, fill: "mute" });
    lanes.forEach((thread, i) => {
      const bad = m.cells.some(([t, e]) => t === thread && (e < 0 || e >= total));
      lens.rect(x0 + i * each + 1, y, each - 2, 18, bad ? "x1" : `${hue}1`);
      if (each > 15) lens.text(x0 + (i + 0.5) * each, y + 13, String(thread % 32), { size: 10.5, anchor: "middle", mono: true, fill: bad ? "on" : "ink" });
      if (thread === m.thread) lens.ring(x0 + i * each, y - 1, each, 20);
    });
    for (const [lane, k, e, thread] of own) {
      const bad = e < 0 || e >= total;
      const [a, b] = [x0 + (lane + 0.5) * each, x(k) + cell / 2];
      lens.shape(`M${a} ${y + 19}C${a} ${y + 45} ${b} ${zoom - 30} ${b} ${zoom - 3}`, `fill: none; stroke: var(--${bad ? "x2" : `${hue}2`}); stroke-width: ${thread === m.thread ? 2.5 : 1}; opacity: ${bad ? 1 : 0.6}`);
    }
    lens.pen.fillStyle = c.ink;
  }

  callout(shown, cell, x, zoom, wide, total, narrow) {
    const { lens, moment: m } = this;
    const k = shown.indexOf(m.element);
    const at = x(k) + cell / 2;
    const far = m.element < 0 ? -m.element : m.element - total + 1;
    const [size, box] = [narrow ? 12 : 14, Math.min(wide - 4, 320)];
    const left = Math.max(2, Math.min(wide - box - 2, at - 60));
    const y = zoom + cell + 22;
    lens.ring(x(k), zoom, cell, cell, "x2", 3);
    lens.shape(`M${left + 7} ${y}h${box - 14}q7 0 7 7v34q0 7 -7 7h${14 - box}q-7 0 -7 -7v-34q0 -7 7 -7zM${at - 7} ${y}l7 -10l7 10z`, "fill: var(--x2)");
    lens.text(left + 10, y + 19, `${this.subject()}: ${plural(far, "element")} ${m.element < 0 ? "before the start" : "past the end"}`, { size, weight: 650, fill: "on" });
    const { role } = this.hazard.involved[0];
    lens.text(left + 10, y + 38, `${this.name(m.thread)} ${role}s ${role === "read" ? "here" : full(m.got, 4)}`, { size: size - 1, fill: "on" });
    for (const [e, j] of [[0, shown.indexOf(0)], [total - 1, shown.indexOf(total - 1)]])
      if (j >= 0) lens.text(x(j) + cell / 2, zoom + cell + 14, count(e), { size: 11, anchor: "middle", fill: "mute", mono: true });
  }

  subject() {
    const { moment: m, base } = this;
    const item = m.place < 0 ? base.shared[m.variable] : base.byPlace.get(m.place);
    return `${item.name}[${m.element < 0 ? `\u2212${-m.element}` : m.element}]`;
  }

  drawPanel(item, total) {
    const { moment: m, hazard } = this;
    replace(
      this.panel,
      el("h3", {}, capital(this.name(m.thread)), el("small", {}, ` of ${this.base.blockName(m.block)}`)),
      el("div", { class: "pair" },
        el("div", {}, el("small", {}, `it ${hazard.involved[0].role}s`), el("span", { class: "big number wrong" }, `[${m.element < 0 ? `\u2212${-m.element}` : count(m.element)}]`)),
        el("div", {}, el("small", {}, "there is"), el("span", { class: "big number" }, `[0\u2013${count(total - 1)}]`))),
      el("p", { class: "mute" }, hazard.involved[0].role === "read" ? `The simulator gives ${full(m.got, 4)}; a GPU gives what is there, or stops the kernel.` : "The simulator drops the value; a GPU overwrites what is there, or stops the kernel."),
    );
  }
}

// Elements around the array's end, GAP for those left out, and the accessed one.
function elements(m, total) {
  const edge = m.element < 0 ? 0 : total;
  const all = m.cells.map(([, e]) => e).filter((e) => Math.abs(e - edge) <= AROUND);
  const inner = m.element < 0 ? GHOSTS : INSIDE;
  const outer = m.element < 0 ? INSIDE : GHOSTS;
  const from = Math.max(m.element < 0 ? -AROUND : 0, Math.min(edge - inner, ...all));
  const to = Math.min(m.element < 0 ? total : total + AROUND, Math.max(edge + outer, ...all.map((e) => e + 1)));
  const found = Array.from({ length: to - from }, (_, i) => from + i);
  if (m.element >= to) return [...found, GAP, m.element];
  return m.element < from ? [m.element, GAP, ...found] : found;
}
