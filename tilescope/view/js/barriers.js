// Threads arriving at barriers, waiting, released; the source line at hand; the hazards.
import { Arrivals, rowsOf } from "./arrivals.js";
import { Cards } from "./cards.js";
import { el, replace, setText } from "./dom.js";
import { plural, ranges } from "./format.js";
import { lineMarks } from "./marks.js";
import { Source } from "./source.js";

export class Barriers {
  constructor(state) {
    this.state = state;
    this.status = el("p", { class: "answer", id: "arrivals", "aria-live": "polite" });
    this.arrivals = new Arrivals(state);
    this.rowsNow = el("ul", { class: "states", id: "states" });
    this.cards = new Cards(state);
    this.source = new Source(state, "barriers");
    this.root = el(
      "div",
      { class: "columns" },
      el(
        "section",
        { class: "panel", "aria-label": "Hazards" },
        el("h2", {}, "Hazards"),
        this.cards.root,
      ),
      el(
        "div",
        {},
        el(
          "section",
          { class: "panel wide", "aria-label": "Barriers" },
          el("h2", {}, "Who waits for whom"),
          this.status,
          this.arrivals.root,
          el(
            "p",
            { class: "legend" },
            el("span", { class: "key run" }, "runs"),
            el("span", { class: "key wait" }, "waits at a barrier"),
            el("span", { class: "key open" }, "barrier opens"),
            el("span", { class: "key" }, "thin line: could run, another has its turn"),
          ),
          this.rowsNow,
        ),
        this.source.root,
      ),
    );
  }

  draw() {
    const { state } = this;
    const run = state.now;
    const block = state.blockNow;
    this.cards.draw(run);
    this.root.classList.toggle("calm", !run.hazards.length);
    const rows = rowsOf(block);
    this.arrivals.draw(run, block, rows);
    const at = rows.map((row) => ({ row, state: stateAt(row, state.step) }));
    const waiting = at.filter((r) => r.state.kind === "waits");
    setText(this.status, status(run, block, state.step, at, waiting, rows));
    replace(
      this.rowsNow,
      at.map(({ row, state: s }) =>
        el("li", { class: s.kind }, el("strong", {}, row.name), " ", s.text),
      ),
    );
    this.source.draw(run, block.lineAt(state.step), lineMarks(state));
  }
}

function stateAt(row, step) {
  for (const [from, to, line, forever] of row.waits) {
    if (step + 0.5 >= from && step + 0.5 < to)
      return {
        kind: "waits",
        line,
        text: `waits, line ${line}${forever ? ", for ever" : ""}`,
      };
  }
  if (row.exit !== null && step >= row.exit) return { kind: "gone", text: "is done" };
  const runs = row.runs.some(([from, to]) => step + 0.5 >= from && step + 0.5 <= to);
  return runs ? { kind: "runs", text: "runs" } : { kind: "ready", text: "could run" };
}

function status(run, block, step, at, waiting, rows) {
  const unit = run.warps === 1 ? "thread" : "warp";
  const barriers = rows.some((row) => row.waits.length);
  if (!barriers) return `No barrier in this kernel's run: nobody waits. Schedule: ${run.schedule}.`;
  const here = `Schedule ${run.schedule}, step ${block.countOf(step)} of the block: `;
  if (!block.watchedAt(step)) return `${here}the barrier opens, and all go on.`;
  if (!waiting.length) return `${here}nobody waits.`;
  const missing = at.filter((r) => r.state.kind === "runs" || r.state.kind === "ready");
  const names = missing.length
    ? ` Missing: ${unit} ${ranges(missing.map((r) => r.row.index))}.`
    : "";
  return `${here}${waiting.length} of ${plural(at.length, unit)} wait${waiting.length === 1 ? "s" : ""} at the barrier in line ${waiting[0].state.line}.${names}`;
}
