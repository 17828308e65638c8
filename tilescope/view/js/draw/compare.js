// Two runs beside each other at the same share of their block, and their counters to one scale.
import { el, replace } from "./dom.js";
import { plainText, sentence } from "./words.js";
import { layoutFor } from "../layout/choose.js";
import { lineValues } from "../layout/narrator.js";
import { State } from "../model/state.js";
import { count } from "../model/format.js";

const ROOM = 560; // pixels of a picture

export class Compare {
  constructor(state, about, runs) {
    this.state = state;
    this.about = about;
    this.title = el("h2", { id: "compare-title" });
    this.more = el("p", {});
    this.sides = runs.slice(0, 2).map((run) => new Side(state, run));
    this.share = el("input", { type: "range", min: 0, max: 100, value: 40, id: "share", oninput: () => this.draw() });
    this.table = el("div", { class: "cmp" });
    this.root = el("section", { id: "compare", "aria-labelledby": "compare-title" }, el("div", { class: "find" }, this.title, this.more), this.table);
    sentence(this.title, about.title.map(([text]) => [text]));
    sentence(this.more, about.more.map(([text]) => [text]));
    this.more.hidden = !plainText(about.more);
    replace(
      this.table,
      el("div", { class: "cmp-row" }, el("label", { class: "label", for: "share" }, "share of a block done"), el("div", { class: "cmp-share" }, this.share)),
      el("div", { class: "cmp-row cmp-names" }, el("span", { class: "label" }), this.sides.map((side) => el("h3", { class: "cmp-name" }, side.run.name))),
      el("div", { class: "cmp-row cmp-pictures" }, el("span", { class: "label" }, "one block"), this.sides.map((side) => side.root)),
      el("h3", { class: "cmp-head" }, "the whole launch"),
      about.rows.map((row) => bars(row)),
    );
  }

  draw() {
    const share = Number(this.share.value) / 100;
    const all = this.root.clientWidth;
    const narrow = window.innerWidth <= 700; // one below the other
    const room = Math.min(ROOM, narrow ? all : all > 900 ? (all - 210) / 2 : (all - 20) / 2);
    for (const side of this.sides) side.draw(room, share);
  }
}

class Side {
  constructor(state, run) {
    this.run = run;
    this.state = new State(state.runs);
    this.state.run = run.number;
    this.state.block = run.recorded[0] ?? 0;
    this.state.thread = Math.min(run.threads - 1, 37);
    this.layout = layoutFor(this.state);
    this.layout.compact = true;
    this.line = el("div", { class: "code cmp-code" });
    this.loads = el("b", { class: "big number" });
    this.reads = el("b", { class: "number" });
    this.root = el("div", { class: "cmp-side", "data-name": run.name }, this.layout.root, this.line, el("p", {}, this.loads, el("br", {}), el("span", { class: "mute" }, "global loads of the block so far")), el("p", { class: "mute" }, this.reads, " reads from shared memory"));
  }

  draw(room, share) {
    const { state } = this;
    if (!state.story) return;
    state.pos = Math.round(share * state.story.count);
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
  const [a, b] = row.values;
  const ratio = a && b && a !== b ? `${(Math.max(a, b) / Math.min(a, b)).toFixed(1).replace(/\.0$/, "")}\u00d7 ${b < a ? "fewer" : "more"}` : "";
  const less = row.name.startsWith("predicted") ? ratio.replace("fewer", "faster").replace("more", "slower") : ratio;
  return el("div", { class: "cmp-row" }, el("span", { class: "label" }, row.name), row.values.map((value, i) =>
    el("span", { class: "bar-line" }, el("i", { class: i ? "" : "base", style: `width: ${Math.max(0.5, (62 * value) / top)}%` }), el("b", { class: "number" }, shown(value)), i && less ? el("small", {}, less) : "")));
}
