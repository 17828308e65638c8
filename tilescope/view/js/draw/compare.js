// Two runs beside each other, as far along the picked thread's sum, and their counters to one scale.
import { el, replace, setText } from "./dom.js";
import { plainText, sentence } from "./words.js";
import { layoutFor } from "../layout/choose.js";
import { lineValues } from "../layout/narrator.js";
import { State } from "../model/state.js";
import { ofOneValue, termsOf } from "../model/sums.js";
import { threadOf } from "../model/thread.js";
import { count, plural } from "../model/format.js";

const ROOM = 560; // pixels of a picture
const OPENS = 3 / 8; // share of a sum at which the page opens

// The terms that the picked thread adds to one value, if there are several.
function termsIn({ blockNow, thread }) {
  const terms = ofOneValue(termsOf(blockNow, thread, threadOf(blockNow, thread).items), 0);
  return terms.length > 1 ? terms : null;
}

// The share of its terms, or else of the block's steps, that is done; 1 only at the block's end.
function shareDone(state) {
  const { pos, story } = state;
  if (!story || pos >= story.count) return 1;
  const terms = termsIn(state);
  return terms ? terms.filter((term) => term.step < pos).length / (terms.length + 1) : pos / story.count;
}

function stepsAt(state, share) {
  if (share >= 1) return state.story.count;
  const terms = termsIn(state);
  if (!terms) return Math.round(share * state.story.count);
  const done = Math.round(share * (terms.length + 1));
  return done ? terms[Math.min(done, terms.length) - 1].step + 1 : 0;
}

export class Compare {
  constructor(state, about, runs) {
    this.state = state;
    this.about = about;
    this.title = el("h2", { id: "compare-title" });
    this.more = el("p", {});
    this.sides = runs.slice(0, 2).map((run) => new Side(state, run));
    this.share = el("input", { type: "range", min: 0, max: 100, value: 40, id: "share", oninput: () => this.go(Number(this.share.value) / 100) });
    this.clock = el("label", { class: "label", for: "share" });
    this.table = el("div", { class: "cmp" });
    this.root = el("section", { id: "compare", "aria-labelledby": "compare-title" }, el("div", { class: "find" }, this.title, this.more), this.table);
    sentence(this.title, about.title.map(([text]) => [text]));
    sentence(this.more, about.more.map(([text]) => [text]));
    this.more.hidden = !plainText(about.more);
    replace(
      this.table,
      el("div", { class: "cmp-row" }, this.clock, el("div", { class: "cmp-share" }, this.share)),
      el("div", { class: "cmp-row cmp-names" }, el("span", { class: "label" }), this.sides.map((side) => el("h3", { class: "cmp-name" }, side.run.name))),
      el("div", { class: "cmp-row cmp-pictures" }, el("span", { class: "label" }, "one block"), this.sides.map((side) => side.root)),
      el("h3", { class: "cmp-head" }, "the whole launch"),
      about.rows.map((row) => bars(row)),
    );
  }

  open() {
    this.go(OPENS);
  }

  go(share) {
    const { state } = this;
    if (state.story) state.update({ pos: stepsAt(state, share) });
  }

  draw() {
    const { state } = this;
    const share = shareDone(state);
    if (document.activeElement !== this.share) this.share.value = String(Math.round(100 * share));
    const terms = state.story && termsIn(state);
    setText(this.clock, terms ? `${terms.filter((term) => term.step < state.pos).length} of ${plural(terms.length, state.isCut ? "recorded term" : "term")} of ${state.now.threadName(state.thread)}` : "share of a block done");
    const all = this.root.clientWidth;
    const narrow = window.innerWidth <= 700; // one below the other
    const room = Math.min(ROOM, narrow ? all : all > 900 ? (all - 210) / 2 : (all - 20) / 2);
    for (const side of this.sides) side.draw(room, share, state);
    if (narrow) return;
    const pictures = this.sides.map((side) => side.layout.root);
    const tall = pictures.map((picture) => parseFloat(picture.style.height) || 0);
    pictures.forEach((picture, i) => {
      picture.style.marginBottom = `${Math.max(...tall) - tall[i] + 10}px`; // 10 of .cmp-code collapse
    });
  }
}

class Side {
  constructor(state, run) {
    this.run = run;
    this.state = new State(state.runs);
    this.state.run = run.number;
    this.layout = layoutFor(this.state);
    this.layout.compact = true;
    this.line = el("div", { class: "code cmp-code" });
    this.loads = el("b", { class: "big number" });
    this.reads = el("b", { class: "number" });
    this.root = el("div", { class: "cmp-side", "data-name": run.name }, this.layout.root, this.line, el("p", {}, this.loads, el("span", { class: "mute" }, " global loads of the block so far, ", this.reads, " reads from shared memory")));
  }

  // Shows the page's own block and thread, at its step or at the same share.
  draw(room, share, page) {
    const { state, run } = this;
    const known = run.recorded.includes(page.block);
    state.block = known ? page.block : (run.recorded[0] ?? 0);
    state.thread = Math.min(run.threads - 1, page.thread);
    if (!state.story) return;
    state.pos = page.run === run.number ? page.pos : stepsAt(state, share);
    this.layout.draw(room);
    const { w, value } = lineValues(state);
    replace(this.line, w ? el("div", { class: "now" }, el("i", {}, String(w.source || w.ptx)), el("span", { class: "text", style: "padding-left: 2ch" }, (this.run.sourceLine(w) || w.name).trim(), el("span", { class: "val" }, value))) : "");
    this.loads.textContent = count(state.story.loads[state.pos]);
    this.reads.textContent = count(state.story.reads[state.pos]);
  }
}

function bars(row) {
  const top = Math.max(...row.values, 1e-9);
  const shown = (value) => (row.name.startsWith("predicted") ? value.toFixed(1) : value ? count(value) : "none");
  return el("div", { class: "cmp-row" }, el("span", { class: "label" }, row.name), row.values.map((value, i) =>
    el("span", { class: "bar-line" }, el("i", { class: i ? "" : "base", style: `width: ${Math.max(0.5, (62 * value) / top)}%` }), el("b", { class: "number" }, shown(value)), i ? el("small", {}, row.ratio) : "")));
}
