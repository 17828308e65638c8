// The counters of every source line, to be sorted; a line of code is the way to its access.
import { el, replace } from "./dom.js";
import { count } from "../model/format.js";
import { isOf } from "../model/worst.js";

const COLUMNS = [
  ["line", "Line"],
  ["code", "Code"],
  ["requests", "Global requests"],
  ["sectors", "Sectors"],
  ["per", "Sectors a request"],
  ["shared", "Shared wavefronts"],
  ["conflicts", "Bank conflicts"],
  ["flops", "FLOPs"],
  ["warps", "Warp instructions"],
];

export class Lines {
  // go(number): to the access of an instruction.
  constructor(go) {
    this.go = go;
    this.sort = { by: "sectors", down: true };
    this.table = el("table", { class: "counters", id: "counters" });
  }

  // first: the recorded instructions that access memory.
  show(run, first) {
    this.run = run;
    this.first = first;
    this.marked = null;
    this.draw();
  }

  // The row of the source line that the access above comes from.
  mark(run, w) {
    this.marked = w;
    const path = w.file >= 0 ? run.sources[w.file].path : "";
    for (const item of this.table.querySelectorAll("tbody tr")) {
      const on = item.dataset.file === path && Number(item.dataset.line) === w.source;
      item.classList.toggle("here", on);
      if (on) item.setAttribute("aria-current", "true");
      else item.removeAttribute("aria-current");
    }
  }

  // The first recorded instruction of a line that accesses memory.
  accessOf(line) {
    return [...this.first.keys()].find((number) => isOf(this.run, number, line));
  }

  draw() {
    const { run } = this;
    const rows = run.lines
      .map((line) => row(line))
      .filter((r) => r.requests || r.shared || r.flops || r.warps);
    const { by, down } = this.sort;
    rows.sort(
      (a, b) =>
        (typeof a[by] === "string" ? a[by].localeCompare(b[by]) : a[by] - b[by]) * (down ? -1 : 1),
    );
    const most = Object.fromEntries(
      COLUMNS.map(([key]) => [
        key,
        Math.max(1, ...rows.map((r) => (typeof r[key] === "number" ? r[key] : 0))),
      ]),
    );
    const heading = ([key, text]) =>
      el(
        "th",
        { scope: "col", "aria-sort": key === by ? (down ? "descending" : "ascending") : "none" },
        el(
          "button",
          { type: "button", onclick: () => this.resort(key) },
          text,
          el("span", { "aria-hidden": "true" }, key === by ? (down ? " \u25be" : " \u25b4") : ""),
        ),
      );
    replace(
      this.table,
      el("caption", { class: "sr" }, "Counters of each source line"),
      el("thead", {}, el("tr", {}, COLUMNS.map(heading))),
      el(
        "tbody",
        {},
        rows.map((r) =>
          el(
            "tr",
            { "data-line": r.line, "data-file": r.file },
            COLUMNS.map(([key]) => cell(r, key, most[key], this.chosen(r))),
          ),
        ),
      ),
    );
  }

  chosen(line) {
    const number = this.accessOf(line);
    return number === undefined ? null : () => this.go(number);
  }

  resort(by) {
    this.sort = {
      by,
      down: this.sort.by === by ? !this.sort.down : by !== "line" && by !== "code",
    };
    this.draw();
    if (this.marked) this.mark(this.run, this.marked);
    this.table.querySelector('[aria-sort]:not([aria-sort="none"]) button')?.focus();
  }
}

function cell(r, key, most, go) {
  if (key === "code") {
    const code = el("code", {}, r.code);
    const shown = go ? el("button", { type: "button", class: "line", onclick: go }, code) : code;
    return el("td", { class: "code-cell" }, shown);
  }
  if (key === "line") return el("td", {}, r.line ? String(r.line) : "\u2013");
  const value = r[key];
  const bar = el("meter", { min: 0, max: most, value, "aria-hidden": "true" });
  return el(
    "td",
    { class: "number" },
    value ? [el("span", {}, key === "per" ? value.toFixed(2) : count(value)), bar] : "",
  );
}

function row(line) {
  const c = line.counters;
  const sum = (space, name) =>
    ["load", "store", "atomic"].reduce((n, kind) => n + (c[`${space}_${kind}`]?.[name] ?? 0), 0);
  const requests = sum("global", "requests");
  return {
    line: line.line,
    file: line.file,
    code: line.code,
    requests,
    sectors: sum("global", "sectors"),
    per: requests ? sum("global", "sectors") / requests : 0,
    shared: sum("shared", "wavefronts"),
    conflicts: sum("shared", "bank_conflicts"),
    flops: c.flops,
    warps: c.warp_instructions,
  };
}
