// The kernel's source with the line at hand lit, and the PTX of that line beneath. A click on a
// line goes to the next step that executes it.
import { el, replace, reveal, setText } from "./dom.js";

export class Source {
  constructor(state, view = "") {
    this.state = state;
    const id = `${view}source-title`;
    this.title = el("h2", { id, class: "sub" }, "Source");
    this.lines = el("ol", { class: "code", tabindex: 0, "aria-label": "CUDA source" });
    this.ptx = el("ol", { class: "code ptx", tabindex: 0, "aria-label": "PTX of this line" });
    this.ptxTitle = el("h2", { class: "sub" }, "PTX of this line");
    this.root = el(
      "section",
      { class: "panel source", "aria-labelledby": id },
      this.title,
      this.lines,
      this.ptxTitle,
      this.ptx,
    );
    this.key = "";
  }

  // marks: Map from line number to a short text for the margin.
  draw(run, w, marks) {
    const file = w && w.file >= 0 ? w.file : (this.file ?? 0);
    this.show(run, file);
    const line = w ? w.source : 0;
    for (const row of this.rows) {
      const mark = marks.get(row.number) ?? "";
      row.item.classList.toggle("now", row.number === line);
      row.item.classList.toggle("marked", mark !== "");
      if (row.number === line) row.item.setAttribute("aria-current", "true");
      else row.item.removeAttribute("aria-current");
      setText(row.margin, mark);
    }
    const lit = this.rows.find((row) => row.number === line);
    if (lit) reveal(this.lines, lit.item);
    this.drawPtx(run, w);
  }

  show(run, file) {
    const key = `${run.number}:${file}`;
    if (key === this.key) return;
    this.key = key;
    this.file = file;
    const source = run.sources[file];
    setText(this.title, source ? source.path : "No CUDA source: this kernel came as PTX");
    const executed = new Set(run.watched.filter((w) => w.file === file).map((w) => w.source));
    this.rows = (source ? source.lines : []).map((text, i) => {
      const [number, margin] = [i + 1, el("b", {})];
      const code = el("code", {}, text || " ");
      const go = () => this.go(run, file, number);
      const shown = executed.has(number)
        ? el("button", { type: "button", class: "line", onclick: go }, code)
        : code;
      return { number, margin, item: el("li", {}, el("i", {}, String(number)), margin, shown) };
    });
    replace(
      this.lines,
      this.rows.map((row) => row.item),
    );
    this.lines.hidden = !source;
  }

  // The next step of a line: of whom the stops are about, else of anyone in the block.
  go(run, file, line) {
    const { state } = this;
    const block = state.blockNow;
    const here = (step) => {
      const w = block.watchedAt(step);
      return w && !w.quiet && w.file === file && w.source === line;
    };
    const next = (steps) => steps.find((s) => s > state.step && here(s)) ?? steps.find(here);
    const own = next(state.stops);
    if (own !== undefined) state.update({ step: own });
    else {
      const step = next([...block.events.keys()]);
      if (step !== undefined) state.update({ mode: "all", step });
    }
  }

  drawPtx(run, w) {
    const same = w
      ? run.ptx.filter((p) =>
          w.file >= 0 ? p.file === w.file && p.source === w.source : Math.abs(p.line - w.ptx) < 12,
        )
      : [];
    setText(this.ptxTitle, w && w.file >= 0 ? `PTX of line ${w.source}` : "PTX");
    let lit = null;
    replace(
      this.ptx,
      same.map((p) => {
        const now = p.line === w.ptx;
        const item = el(
          "li",
          { class: now ? "now" : null, "aria-current": now ? "true" : null },
          el("i", {}, String(p.line)),
          el("code", {}, p.text),
        );
        if (now) lit = item;
        return item;
      }),
    );
    if (lit) reveal(this.ptx, lit);
    this.ptx.hidden = same.length === 0;
  }
}
