// The kernel's source with the line at hand lit, and the PTX of that line beneath.
import { el, replace, reveal, setText } from "./dom.js";

export class Source {
  constructor() {
    this.title = el("h2", { id: "source-title", class: "sub" }, "Source");
    this.lines = el("ol", { class: "code", tabindex: 0, "aria-label": "CUDA source" });
    this.ptx = el("ol", { class: "code ptx", tabindex: 0, "aria-label": "PTX of this line" });
    this.ptxTitle = el("h2", { class: "sub" }, "PTX of this line");
    this.root = el(
      "section",
      { class: "panel source", "aria-labelledby": "source-title" },
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
    this.rows = (source ? source.lines : []).map((text, i) => {
      const margin = el("b", {});
      return {
        number: i + 1,
        margin,
        item: el("li", {}, el("i", {}, String(i + 1)), margin, el("code", {}, text || " ")),
      };
    });
    replace(
      this.lines,
      this.rows.map((row) => row.item),
    );
    this.lines.hidden = !source;
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
