// A moment in shared memory: elements that are written and not, a read that comes too early or too
// late, the value that it should get, and the same place in the fixed run.
import { el, replace } from "../draw/dom.js";
import { drawSheet, topOf, usesDigits } from "../draw/sheet.js";
import { full, inList } from "../draw/numbers.js";
import { madeBy, valueOf } from "../draw/threadpanel.js";
import { blockOf } from "../model/block.js";
import { capital, count, plural } from "../model/format.js";
import { SHARED, subscripts } from "../model/run.js";
import { hueAt, hueOfVariable, storyOf } from "../model/story.js";
import { termsOf } from "../model/sums.js";
import { threadOf } from "../model/thread.js";
import { sayElement } from "../layout/say.js";
import { Moment } from "./moment.js";
import { after, sharedValue } from "../layout/values.js";

const WRAP = 16; // columns of a 1-D array
const FLIGHT = "still under way";

export class Race extends Moment {
  constructor(state) {
    super(state, "The shared array at the moment of the hazard");
  }

  twin() {
    const { state, moment, base } = this;
    const index = this.terms(base).findIndex((term) => term.step >= moment.step);
    const other = this.terms(state.runs[base.fixed]);
    const term = other[Math.max(0, Math.min(other.length - 1, index))];
    return term ? term.step + 1 : Math.max(0, ...storyOf(state.runs[base.fixed], moment.block).releases.slice(0, 1)) + 1;
  }

  terms(run) {
    const block = blockOf(run, this.moment.block);
    return termsOf(block, this.moment.thread, threadOf(block, this.moment.thread).items);
  }

  element() {
    const { variable, element } = this.moment;
    const shared = this.base.shared[variable];
    return [shared.name + subscripts(shared.shape, element), hueOfVariable(this.base, shared)];
  }

  // Whether no second thread writes the element in time: it is never written, or a copy is under way.
  get alone() {
    return this.moment.title.length > 0;
  }

  title() {
    const { moment: m, hazard, base } = this;
    if (this.alone) return super.title();
    const reader = this.name(m.thread);
    const writer = this.name(m.other_thread);
    const start = `${capital(reader)} reads `;
    const rest = { overwritten: ` after ${writer} has overwritten it.`, "right by luck": `, and nothing makes ${writer} wait its turn.` }[m.kind] ?? ` before ${writer} has written it.`;
    const more = [];
    if (hazard.fix_line) more.push(`${this.fixName === "the barrier" ? "A barrier" : "A fix"} ${this.fixName === "the barrier" ? "is missing" : "belongs"} ${hazard.fix_text.includes("before line") ? "before" : "after"} line ${hazard.fix_line}.`);
    else more.push(`${hazard.title}.`);
    if (base.wrong) more.push(`${count(base.wrong[0])} of ${plural(base.wrong[1], "result")} ${base.wrong[0] === 1 ? "is" : "are"} wrong in this run; another order of the warps may give other values, or the right ones.`);
    return { title: [[start], this.element(), [rest]], more: [[more.join(" ")]] };
  }

  sentence() {
    const { moment: m, state } = this;
    const [r, w] = [m.thread >> 5, m.other_thread >> 5];
    if (state.fixed) return [[`With ${this.fixName} `, "strong"], [`warp ${r} waits; then it reads ${full(m.should ?? m.got, 4)}.`]];
    if (this.alone) return super.sentence();
    const between = Math.abs(m.other_step - m.step);
    const other = r === w ? `${this.name(m.other_thread)}` : `Warp ${w}`;
    const early = r === w ? this.name(m.thread) : `Warp ${r}`;
    if (m.other_step > m.step) return [[`${capital(early)} reads \u2460. ${capital(other)} writes \u2461 ${plural(between, "step")} later.`]];
    return [[`${capital(other)} writes \u2461. ${capital(early)} reads \u2460 ${plural(between, "step")} later.`]];
  }

  draw(room) {
    const { state, moment: m } = this;
    const run = state.now;
    const variable = run.shared[m.variable];
    const hue = hueOfVariable(run, variable);
    const narrow = room < 560;
    const columns = variable.shape.length > 1 ? variable.shape[variable.shape.length - 1] : Math.min(WRAP, variable.shape[0]);
    const total = variable.bytes / variable.size;
    const first = Math.floor(m.element / (columns * 32)) * columns * 32; // the rows around it
    const rows = Math.min(32, Math.ceil((total - first) / columns));
    const cell = Math.max(6, Math.min(26, Math.floor(Math.min((Math.min(room, 520) - 76) / columns, 330 / rows))));
    const L = { x: 62, y: 34, cell, rows, columns, hue };
    const at = { x: L.x + ((m.element - first) % columns) * cell, y: L.y + Math.floor((m.element - first) / columns) * cell };
    const { lens } = this;
    const beside = at.x + cell + (narrow ? 210 : 346) <= room;
    const high = L.y + rows * cell + 8;
    lens.begin(Math.max(L.x + columns * cell + 6, room), beside ? Math.max(high, at.y + 60) : Math.max(high, at.y + cell + 74), room);
    const now = state.pos ? state.blockNow.steps[state.pos - 1] : -1;
    const story = storyOf(run, state.block);
    const opened = story.releases.filter((step) => step < state.pos);
    const begins = opened.length ? state.blockNow.steps[opened[opened.length - 1]] : -1;
    const range = run.story.ranges[run.story.sources[m.variable]] ?? null;
    const top = range ? topOf(range) : Math.max(1, Math.abs(m.should ?? 1), Math.abs(m.got ?? 1));
    const digits = range ? usesDigits(range, cell) : false;
    const flying = new Set(m.kind === FLIGHT && !state.fixed ? m.cells.map(([, index]) => index) : []);
    drawSheet(lens.pen, {
      x: L.x, y: L.y, cell, rows, cols: columns, hue, digits, top,
      at: (i, j) => {
        const index = first + i * columns + j;
        if (index >= total) return null;
        const found = sharedValue(state.blockNow, variable, index, now);
        if (!found) return { value: undefined };
        if (flying.has(index)) return { value: found.value, tone: 1, state: "wait" };
        const old = found.write.step < begins && this.rewritten(variable, index, begins);
        return { value: found.value, tone: 1, state: old && !state.fixed ? "old" : "" };
      },
    });
    lens.spot({
      x: L.x, y: L.y, w: columns * cell, h: rows * cell,
      say: (x, y) => sayElement(state, variable, first + Math.floor(y / cell) * columns + Math.floor(x / cell)),
      grid: { rows, cols: columns, cell, name: variable.name },
    });
    this.drawWarps(L, first, now, begins);
    this.drawNeed(L, first, begins);
    this.drawCallout(L, at, narrow, room, beside);
    lens.end();
    this.heading(`${variable.name} in shared memory`, el("small", {}, state.fixed ? " with the fix" : ` at step ${m.step} of the block`));
    this.drawPanel();
  }

  // Whether an element is written again before the next barrier, so that its value is old.
  rewritten(variable, index, begins) {
    const { state } = this;
    const block = state.blockNow;
    const end = this.intervalEnd(begins);
    return block.writes.of(SHARED, variable.start + index * variable.size).some((write) => write.step > begins && write.step < end);
  }

  intervalEnd(begins) {
    const { state } = this;
    const story = storyOf(state.now, state.block);
    const next = story.releases.map((step) => state.blockNow.steps[step]).find((event) => event > begins);
    return next ?? Infinity;
  }

  // The warp that writes each row before the next barrier, and whether it already has.
  drawWarps(L, first, now, begins) {
    const { lens, state } = this;
    const run = state.now;
    const variable = run.shared[this.moment.variable];
    const end = this.intervalEnd(begins);
    let group = null;
    const close = () => {
      if (!group) return;
      const [y0, y1] = [L.y + group.from * L.cell, L.y + group.to * L.cell];
      lens.shape(`M${L.x - 5} ${y0 + 2}h-3V${y1 - 2}h3`, "fill: none; stroke: var(--faint)");
      if (y1 - y0 > 9) lens.text(L.x - 12, (y0 + y1) / 2 + 4, `warp ${group.warp}`, { size: 11.5, anchor: "end", weight: group.has ? 700 : 400, fill: group.has ? "ink" : "mute" });
      group = null;
    };
    for (let i = 0; i < L.rows; i++) {
      const writers = new Set();
      let has = true;
      for (let j = 0; j < L.columns; j++)
        for (const write of state.blockNow.writes.of(SHARED, variable.start + (first + i * L.columns + j) * variable.size)) {
          if (write.step <= begins || write.step >= end) continue;
          writers.add(write.thread >> 5);
          if (write.step > now) has = false;
        }
      const warp = writers.size === 1 ? [...writers][0] : -1;
      if (group && group.warp === warp) group.to = i + 1;
      else {
        close();
        if (warp >= 0) group = { warp, from: i, to: i + 1, has };
      }
    }
    close();
  }

  // Elements of the array that the thread reads before the next barrier.
  drawNeed(L, first, begins) {
    const { lens, state, moment: m } = this;
    const run = state.now;
    const variable = run.shared[m.variable];
    const end = this.intervalEnd(begins);
    const cells = new Set();
    for (const item of threadOf(state.blockNow, m.thread).items)
      if (item.w.kind === "load" && item.place === SHARED && item.step > begins && item.step < end) {
        const at = run.element(SHARED, item.offset);
        if (at.variable === variable) cells.add(at.index - first);
      }
    const rows = [...cells].map((i) => Math.floor(i / L.columns));
    const cols = [...cells].map((i) => i % L.columns);
    if (cells.size < 2) return;
    const [r0, r1, c0, c1] = [Math.min(...rows), Math.max(...rows) + 1, Math.min(...cols), Math.max(...cols) + 1];
    if ((r1 - r0) * (c1 - c0) !== cells.size) return;
    lens.ring(L.x + c0 * L.cell - 1.5, L.y + r0 * L.cell - 1.5, (c1 - c0) * L.cell + 3, (r1 - r0) * L.cell + 3);
    const what = c1 - c0 === 1 ? "column" : r1 - r0 === 1 ? "row" : "part";
    lens.text(L.x - 2, L.y - 12, `${this.name(m.thread)} needs all of this ${what}`, { size: 13 });
  }

  drawCallout(L, at, narrow, room, beside) {
    const { lens, state, moment: m } = this;
    const [label] = this.element();
    const y = beside ? at.y + L.cell / 2 : at.y + L.cell + 36;
    const hue = state.fixed ? "c" : "x";
    const wide = narrow ? 246 : 296;
    const x = beside ? at.x + L.cell + (narrow ? 10 : 44) : Math.max(0, Math.min(at.x - wide / 2, room - wide - 4));
    lens.ring(at.x, at.y, L.cell, L.cell, `${hue}2`, 3);
    lens.arrow(beside ? `M${x} ${y}H${at.x + L.cell + 6}` : `M${at.x + L.cell / 2} ${y - 12}V${at.y + L.cell + 6}`, hue, 2.5);
    lens.shape(`M${x + 7} ${y - 14}h${wide - 14}q7 0 7 7v${state.fixed ? 14 : 32}q0 7 -7 7h${14 - wide}q-7 0 -7 -7v-${state.fixed ? 14 : 32}q0 -7 7 -7z`, `fill: var(--${hue}2)`);
    const size = narrow ? 12 : 14;
    const what = { "not yet written": "nothing is here yet", "an old value": `still ${full(m.got, 3)}`, overwritten: `already ${full(m.got, 3)}`, "right by luck": `${full(m.got, 3)}, by luck`, [FLIGHT]: `${full(m.got, 3)}, or not yet` }[m.kind] ?? "written by no thread";
    const first = state.fixed ? `${label}: ${full(m.should ?? m.got, 4)}, as it should` : `${label}: ${what}`;
    lens.text(x + 10, y + 5, first, { size, weight: 650, fill: "on" });
    if (state.fixed) return;
    const between = Math.abs(m.other_step - m.step);
    const when = m.other_step > m.step ? `writes ${m.kind === "not yet written" ? "it" : full(m.should, 4)} ${plural(between, "step")} later` : `wrote it ${plural(between, "step")} before`;
    const below = m.other_step < 0 ? "a GPU gives what was left here" : m.kind === FLIGHT ? `${this.name(m.other_thread)} copies it` : `${this.name(m.other_thread)} ${when}`;
    lens.text(x + 10, y + 23, below, { size: size - 1, fill: "on" });
  }

  drawPanel() {
    const { state, moment: m, base } = this;
    const terms = this.terms(state.now);
    const right = this.hasFix ? this.terms(state.runs[base.fixed]) : [];
    const wrong = this.terms(base);
    const index = wrong.findIndex((term) => term.step >= m.step);
    const got = state.fixed ? (m.should ?? m.got) : m.got;
    const from = Math.max(0, Math.min(index - 2, terms.length - 5));
    replace(
      this.panel,
      el("h3", {}, capital(this.name(m.thread)), index >= 0 ? el("small", {}, ` term ${index + 1} of ${terms.length}${state.isCut ? " recorded" : ""}`) : ""),
      el("div", { class: "pair" },
        el("div", {}, el("small", {}, "it gets"), el("span", { class: `big number${state.fixed || m.kind === "right by luck" ? "" : " wrong"}` }, full(got, 4))),
        this.alone ? null : el("div", {}, el("small", {}, "it should get"), el("span", { class: "big number" }, full(m.should, 4)))),
      index < 0 ? null : el("ol", { class: "terms" }, terms.slice(from, from + 5).map((term, k) => this.term(term, right[from + k], from + k === index))),
      this.consequence(),
      el("p", { class: "mute" }, this.remark()),
    );
  }

  term(term, right, now) {
    const run = this.state.now;
    const part = (operand, k) => {
      const value = valueOf(operand);
      const other = right ? valueOf(right.operands[k]) : value;
      const hue = value !== other ? "x" : operand?.item?.w.access ? hueAt(run, operand.item.place, operand.item.offset) : "c";
      return el("span", { class: `hue-${hue}` }, value === null ? "\u2013" : inList(value));
    };
    return el("li", { class: ["done", now ? "now" : "", now && !this.state.fixed ? "wrong" : ""].join(" ").trim() },
      part(term.operands[0], 0), el("span", { class: "sign" }, term.operands.length > 1 ? "\u00d7" : ""), term.operands.length > 1 ? part(term.operands[1], 1) : el("span", {}), el("span", { class: "sum" }, inList(term.sum)));
  }

  // The thread's result in both runs.
  consequence() {
    const { state, moment: m, base } = this;
    const made = madeBy(base, m.block, m.thread);
    if (!made.startsWith("makes ") || !this.hasFix) return null;
    const number = m.block * base.threads + m.thread;
    const array = base.arrays.find((one) => one.drawn && one.writes_total && base.pool.data(one.owner).some((owner) => Number(owner) === number));
    const index = base.pool.data(array.owner).findIndex((owner) => Number(owner) === number);
    const bad = after(base, array, index);
    const twin = state.runs[base.fixed];
    const good = after(twin, twin.byPlace.get(array.place), index);
    if (bad === null || good === null) return null;
    const label = made.slice(6);
    if (state.fixed || bad === good) return el("p", { class: "consequence" }, `${label} comes out as `, el("b", { class: "hue-c number" }, full(good)), ".");
    return el("p", { class: "consequence" }, `So ${label} comes out as `, el("b", { class: "hue-x number" }, full(bad)), " instead of ", el("b", { class: "hue-c number" }, full(good)), ".");
  }

  remark() {
    const m = this.moment;
    if (m.kind === FLIGHT) return this.state.fixed ? "The copy is complete before the read." : "Hatched elements are under way: the simulator copies at once, a GPU takes its time.";
    if (m.other_step < 0) return "The simulator gives 0; a GPU gives whatever was left there.";
    if (this.state.fixed) return `${capital(this.name(m.other_thread))} wrote it before ${this.fixName} ${this.fixName === "the barrier" ? "opened" : "let the reader go on"}.`;
    if (m.kind === "not yet written") return "Here uninitialised memory reads as 0; a GPU gives whatever was left there.";
    if (m.kind === "an old value") return "The tinted elements are left over from the phase before.";
    if (m.kind === "overwritten") return "The value it wanted is gone: the next phase had begun.";
    return "This order of the warps gives the right value; another would not.";
  }
}
