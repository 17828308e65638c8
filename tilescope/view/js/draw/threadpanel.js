// The picked thread: what it makes, its running value, and the terms that it adds.
import { el, replace, svg } from "./dom.js";
import { full, inList } from "./numbers.js";
import { hueAt } from "../model/story.js";
import { ofOneValue, termsOf } from "../model/sums.js";
import { threadOf } from "../model/thread.js";
import { capital, plural } from "../model/format.js";
import { subscripts } from "../model/run.js";

const ROWS = 8;
const SIGNS = { add: "+", sub: "\u2212", fma: "\u00d7", mad: "\u00d7", mul: "\u00d7" };

export class ThreadPanel {
  constructor(state) {
    this.state = state;
    this.root = el("section", { class: "thread", "aria-label": "The picked thread" });
  }

  draw() {
    const { state } = this;
    const run = state.now;
    const block = state.blockNow;
    const items = threadOf(block, state.thread).items;
    const terms = ofOneValue(termsOf(block, state.thread, items), state.pos);
    const done = terms.filter((term) => term.step < state.pos);
    if (run.tensor && (run.story.layout === "product" || state.current?.w?.shape)) return void this.along(run, items);
    const last = done[done.length - 1];
    const value = last ? last.sum : terms.length ? 0 : lastValue(block, items, state.pos);
    replace(
      this.root,
      this.head(run),
      el("div", { class: "big number" }, value === null ? "\u2013" : full(value, 4)),
      el("p", { class: "mute" }, told(terms, done, state.isCut)),
      terms.length ? this.list(run, terms, done) : null,
      terms.length > ROWS ? curve(terms, done.length, state.story) : null,
    );
  }

  head(run) {
    const { state } = this;
    const [verb, ...rest] = madeBy(run, state.block, state.thread).split(" ");
    return el("h3", {}, capital(run.threadName(state.thread)), el("small", {}, ` ${verb} `, el("span", { class: "whole-word" }, rest.join(" "))));
  }

  // Of matrix products by tensor cores: how many the warp has done, or how far along k it is.
  along(run, items) {
    const { state } = this;
    const depth = run.story.depth || 1;
    const products = state.story.products[state.warp];
    const [done, all] = [products.filter((step) => step < state.pos).length * depth, products.length * depth];
    const busy = products.length > 0;
    const holds = items.findLast((item) => item.step <= state.event && item.w.shape && item.values.some((value) => value !== null))?.values.slice(0, 4) ?? [];
    replace(
      this.root,
      this.head(run),
      el("div", { class: "big number" }, busy ? String(done) : "\u2013"),
      el("p", { class: "mute" }, busy ? `of ${all} ${state.isCut ? "recorded, " : ""}${run.story.depth ? "along k multiplied" : "matrix products done"} by warp ${state.warp}. Its threads hold the sums together.${holds.length ? ` This one holds ${holds.map((value) => full(value, 4)).join(", ")} of the last product.` : ""}` : `Warp ${state.warp} multiplies nothing: it loads.`),
    );
  }

  list(run, terms, done) {
    const n = done.length;
    const from = terms.length > ROWS ? Math.max(0, Math.min(n - 6, terms.length - ROWS)) : 0;
    const some = terms.slice(from, from + ROWS);
    const whole = terms.every((t) => Number.isInteger(t.sum) && t.operands.every((o) => valueOf(o) === null || Number.isInteger(valueOf(o))));
    const current = this.state.current;
    return el(
      "ol",
      { class: whole ? "terms whole" : "terms" },
      some.map((term, k) => {
        const i = from + k;
        const now = i === n - 1 && current && term.step >= current.from && term.step < current.to;
        const cut = i > from && this.phase(term) !== this.phase(terms[i - 1]);
        const [first, second] = term.operands;
        return el(
          "li",
          { class: [i < n ? "done" : "", now ? "now" : "", cut ? "cut" : ""].join(" ").trim() || null },
          operand(run, first, whole),
          second === undefined ? el("span", {}) : el("span", { class: "sign" }, SIGNS[term.name] ?? term.name),
          second === undefined ? el("span", {}) : operand(run, second, whole),
          el("span", { class: "sum" }, i < n ? inList(term.sum, whole) : ""),
        );
      }),
    );
  }

  phase(term) {
    return this.state.story.phaseAt(term.step + 1);
  }
}

function told(terms, done, isCut) {
  if (!terms.length) return "the last value it computed";
  const all = (word) => `${done.length} of ${plural(terms.length, isCut ? `recorded ${word}` : word)}`;
  if (["max", "min"].includes(terms[0].name)) return `${all("value")} compared`;
  const product = terms.every((term) => term.name === "fma" || term.name === "mad");
  return `${all(product ? "product" : "term")} added`;
}

function lastValue(block, items, pos) {
  const limit = pos ? block.steps[pos - 1] : -1;
  const found = items.filter((i) => i.step <= limit && (i.w.kind === "value" || i.w.kind === "load") && i.values.length && !i.w.quiet).pop();
  return found ? found.values[0] : null;
}

// The element that a thread writes last of a global array.
export function madeBy(run, block, thread) {
  const number = block * run.threads + thread;
  for (const array of run.arrays) {
    if (!array.drawn || !array.writes_total) continue;
    const index = run.pool.data(array.owner).findIndex((owner) => Number(owner) === number);
    if (index >= 0) return `makes ${array.name}${subscripts(array.shape, index)}`;
  }
  return "writes no element";
}

export function valueOf(input) {
  if (typeof input === "string") return Number.isFinite(Number(input)) ? Number(input) : null;
  return input?.item ? input.item.values[input.k] ?? null : null;
}

function operand(run, input, whole) {
  const value = valueOf(input);
  const item = input?.item;
  const hue = item?.w.access ? hueAt(run, item.place, item.offset) : "c";
  return el("span", { class: `hue-${hue}` }, value === null ? "\u2013" : inList(value, whole));
}

// How the running value grows: done strong, to come grey, a rule where a phase begins.
function curve(terms, n, story) {
  const [W, H] = [226, 74];
  const values = [0, ...terms.map((term) => (Number.isFinite(term.sum) ? term.sum : 0))];
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const X = (i) => (i / terms.length) * W;
  const Y = (v) => H - 4 - ((v - low) / (high - low || 1)) * (H - 8);
  const line = (list) => `M${list.map((v, i) => `${X(i).toFixed(1)} ${Y(v).toFixed(1)}`).join("L")}`;
  const rules = story.phases
    .map((phase) => terms.findIndex((term) => term.step >= phase.from))
    .filter((i, k, all) => i >= 0 && all.indexOf(i) === k);
  return svg(
    "svg",
    { class: "curve", width: W, height: H + 16, viewBox: `0 0 ${W} ${H + 16}`, role: "img", "aria-label": "How the running value grows" },
    rules.map((i) => svg("path", { d: `M${X(i)} 0V${H}`, class: "rule" })),
    svg("path", { d: `M0 ${Y(0)}H${W}`, class: "rule" }),
    svg("path", { d: line(values), class: "later" }),
    svg("path", { d: line(values.slice(0, n + 1)), class: "grown" }),
    svg("circle", { cx: X(n), cy: Y(values[n]), r: 4, class: "tip" }),
    svg("text", { x: 0, y: H + 13, class: "axis" }, "0"),
    svg("text", { x: W, y: H + 13, class: "axis", "text-anchor": "end" }, String(terms.length)),
  );
}
