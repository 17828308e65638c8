// The moment of two accesses that nothing orders: the elements around theirs, the first access's warp
// above them and the second's below.
import { el, replace } from "../draw/dom.js";
import { drawSheet, topOf, usesDigits } from "../draw/sheet.js";
import { full } from "../draw/numbers.js";
import { capital, count, plural } from "../model/format.js";
import { hueOf, hueOfVariable } from "../model/story.js";
import { DISCS, Moment } from "./moment.js";
import { sayElement } from "../layout/say.js";
import { before, outputValue, sharedValue } from "../layout/values.js";

const AROUND = 18; // elements shown on each side

export class Accesses extends Moment {
  constructor(state) {
    super(state, "The elements of the array at the moment of the two accesses");
  }

  // The accesses, as { block, thread, role, line, cells, value }.
  get both() {
    const { moment: m, hazard } = this;
    const part = (k) => ({ role: hazard.involved[k].role, value: m.values[k], line: m.tags[k][2] });
    const first = { ...part(0), block: m.block, thread: m.thread, cells: m.cells };
    if (m.other_step < 0) return [first];
    return [first, { ...part(1), block: m.other_block, thread: m.other_thread, cells: m.other_cells }];
  }

  draw(room) {
    const { state, lens, moment: m, both } = this;
    const run = state.now;
    const variable = m.place < 0 ? run.shared[m.variable] : null;
    const item = variable ?? run.byPlace.get(m.place);
    const hue = variable ? hueOfVariable(run, variable) : hueOf(run, item);
    const total = item.shape.reduce((a, b) => a * b, 1);
    const touched = both.flatMap(({ cells }) => cells.map(([, e]) => e)).filter((e) => Math.abs(e - m.element) <= AROUND);
    const from = Math.max(0, Math.min(...touched, m.element - 6) - 1);
    const to = Math.min(total, Math.max(...touched, m.element + 6) + 2);
    const wide = Math.min(room, 860);
    const cell = Math.min(30, (wide - 4) / (to - from));
    const y = 112;
    lens.begin(wide, y + cell + (both.length > 1 ? 92 : 12), room);
    lens.text(2, 12, to - from < total ? `${item.unit}s ${from} to ${to - 1} of ${count(total)}` : plural(total, item.unit), { size: 12, fill: "mute" });
    const value = (e) => (variable ? sharedValue(state.blockNow, variable, e, state.event)?.value : item.writes_total ? outputValue(state, item, e) : before(run, item, e));
    const range = run.story.ranges[variable ? run.story.sources[m.variable] : m.place];
    const sets = both.map(({ cells }) => new Set(cells.map(([, e]) => e)));
    const wrong = (e) => sets.every((set) => set.has(e)) && !state.fixed;
    drawSheet(lens.pen, {
      x: 2, y, cell, rows: 1, cols: to - from, hue, digits: range ? usesDigits(range, cell) : false, top: range ? topOf(range) : 1,
      at: (_, k) => ({ value: value(from + k), tone: sets.some((set) => set.has(from + k)) && !wrong(from + k) ? 2 : 1, state: wrong(from + k) ? "wrong" : "" }),
    });
    const x = (e) => 2 + (e - from) * cell;
    both.forEach((access, k) => this.warp(access, k, x, y + (k ? cell : 0), [from, to], cell, wide, hue));
    lens.ring(x(m.element), y, cell, cell, state.fixed ? "ink" : "x2", 3);
    lens.spot({
      x: 2, y, w: (to - from) * cell, h: cell, say: (px) => sayElement(state, item, from + Math.floor(px / cell)),
      grid: { rows: 1, cols: to - from, cell, name: item.name },
    });
    lens.end();
    this.heading(`${item.name} in ${item.space} memory`, el("small", {}, state.fixed ? " with the fix" : ` at step ${m.step} of ${run.blockName(m.block)}`));
    this.drawPanel();
  }

  // The lanes of an access, above the elements or below, with lines to those that it touches.
  warp(access, k, x, edge, [from, to], cell, wide, hue) {
    const { lens, base } = this;
    const lanes = [...new Set(access.cells.map(([thread]) => thread))];
    const each = Math.min(20, (wide - 4) / Math.max(1, lanes.length));
    const own = access.cells.filter(([, e]) => e >= from && e < to);
    const middle = own.length ? own.reduce((sum, [thread, e]) => sum + x(e) - lanes.indexOf(thread) * each, 0) / own.length : 2;
    const x0 = Math.max(2, Math.min(wide - 2 - lanes.length * each, middle));
    const [y, tip] = k ? [edge + 44, edge + 3] : [edge - 62, edge - 3];
    const start = k ? y - 1 : y + 19;
    const title = `${DISCS[k]} warp ${access.thread >> 5} of ${base.blockName(access.block)} ${access.role}s`;
    const where = Math.max(2, Math.min(x0, wide - title.length * 7));
    lens.text(where, k ? y + 33 : y - 8, title, { size: 12.5, weight: 650 });
    for (const [thread, e] of own) {
      const [a, b] = [x0 + (lanes.indexOf(thread) + 0.5) * each, x(e) + cell / 2];
      const picked = thread === access.thread && e === this.moment.element;
      const colour = picked && !this.state.fixed ? "x2" : `${hue}2`;
      lens.shape(`M${a} ${start}C${a} ${(start + tip) / 2} ${b} ${(start + tip) / 2} ${b} ${tip}`, `fill: none; stroke: var(--${colour}); stroke-width: ${picked ? 2.5 : 1}; opacity: ${picked ? 1 : 0.6}`);
    }
    lanes.forEach((thread, i) => {
      lens.rect(x0 + i * each + 0.5, y, each - 1, 18, `${hue}1`);
      if (each > 15) lens.text(x0 + (i + 0.5) * each, y + 13, String(thread % 32), { size: 10.5, anchor: "middle", mono: true });
      if (thread === access.thread) lens.ring(x0 + i * each, y - 1, each, 20);
    });
  }

  drawPanel() {
    const { both, base, moment: m } = this;
    replace(
      this.panel,
      both.map((access, k) => el("div", { class: "group" },
        el("h3", {}, `${DISCS[k]} ${capital(base.threadName(access.thread))}`, el("small", {}, ` of ${base.blockName(access.block)}, line ${access.line}`)),
        el("small", {}, `it ${access.role}s `),
        el("span", { class: "big number" }, full(access.value, 4)))),
      el("p", { class: "mute" }, m.remark),
    );
  }
}
