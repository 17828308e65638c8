// Who arrives at barriers when, and waits how long: a row for each warp, over the block's steps.
import { el, replace, svg } from "./dom.js";
import { plural } from "./format.js";
import { RELEASE } from "./run.js";

const ROW = 20;
const LEFT = 92;

export class Arrivals {
  constructor(state) {
    this.state = state;
    this.root = el("div", {
      class: "chart",
      tabindex: 0,
      role: "group",
      "aria-label": "Arrivals at barriers over the steps of the block",
    });
  }

  draw(run, block, rows) {
    const key = `${run.number}:${block.number}:${this.root.clientWidth}`;
    if (this.chartKey !== key) {
      this.chartKey = key;
      this.build(run, block, rows);
    }
    const x = this.x(this.state.step + 0.5);
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
  }

  x(step) {
    return this.left + (step * (this.wide - this.left - 8)) / this.total;
  }

  build(run, block, rows) {
    this.total = Math.max(1, block.events.length);
    this.wide = Math.max(300, this.root.clientWidth - 4);
    const unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 15;
    this.left = LEFT * unit;
    const tall = 12 * unit;
    const height = (rows.length * ROW + 26) * unit;
    const parts = [
      svg(
        "defs",
        {},
        svg(
          "pattern",
          {
            id: "waiting",
            width: 6,
            height: 6,
            patternUnits: "userSpaceOnUse",
            patternTransform: "rotate(45)",
          },
          svg("rect", { width: 6, height: 6, class: "wait-paper" }),
          svg("rect", { width: 2, height: 6, class: "wait-ink" }),
        ),
      ),
    ];
    rows.forEach((row, i) => {
      const y = (6 + i * ROW) * unit;
      parts.push(svg("text", { x: 4, y: y + tall, class: "row-name" }, row.name));
      parts.push(
        svg("line", {
          x1: this.x(0),
          x2: this.x(row.end),
          y1: y + 2 + tall / 2,
          y2: y + 2 + tall / 2,
          class: "ready",
        }),
      );
      const bars = (spans, least, about) =>
        spans.map(([from, to]) =>
          svg("rect", {
            x: this.x(from),
            y: y + 2,
            width: Math.max(least, this.x(to) - this.x(from)),
            height: tall,
            ...about,
          }),
        );
      parts.push(...bars(row.runs, 1, { class: "runs" }));
      parts.push(...bars(row.waits, 2, { class: "waits", fill: "url(#waiting)" }));
    });
    block.events.forEach((e, step) => {
      if (block.batch.watched[e] === RELEASE)
        parts.push(
          svg("line", {
            x1: this.x(step + 0.5),
            x2: this.x(step + 0.5),
            y1: 2,
            y2: height - 18 * unit,
            class: "opens",
          }),
        );
    });
    this.cursor = svg("line", { y1: 0, y2: height - 14 * unit, class: "cursor" });
    parts.push(
      svg(
        "text",
        { x: this.wide - 8, y: height - 4, class: "row-name", "text-anchor": "end" },
        "steps of the block \u2192",
      ),
      this.cursor,
    );
    const picture = svg(
      "svg",
      {
        width: this.wide,
        height,
        role: "img",
        "aria-label": `${plural(rows.length, "row")}, ${plural(this.total, "step")}`,
      },
      parts,
    );
    picture.addEventListener("click", (event) => {
      const part =
        (event.clientX - picture.getBoundingClientRect().left - this.left) /
        (this.wide - this.left - 8);
      this.state.update({
        mode: "all",
        step: Math.max(0, Math.min(this.total - 1, Math.floor(part * this.total))),
      });
    });
    replace(this.root, picture);
  }
}

// A row for each warp; for a block of one warp, for each thread.
export function rowsOf(block) {
  if (block.rows) return block.rows;
  const { run } = block;
  const byThread = run.warps === 1;
  const size = byThread ? run.threads : run.warps;
  const rows = Array.from({ length: size }, (_, i) => ({
    name: byThread ? run.threadName(i) : `warp ${i}`,
    index: i,
    runs: [],
    waits: [],
    exit: null,
    since: null,
    line: 0,
    end: block.events.length,
  }));
  block.events.forEach((e, step) => {
    const w = block.watchedOf(e);
    const here = new Set();
    block.batch.each(e, block.column, (t) => here.add(byThread ? t : Math.floor(t / 32)));
    for (const i of here) mark(rows[i], step, w);
  });
  for (const row of rows)
    if (row.since !== null) row.waits.push([row.since, block.events.length, row.line, true]);
  block.rows = rows;
  return rows;
}

function mark(row, step, w) {
  if (!w) {
    if (row.since !== null) row.waits.push([row.since, step + 0.5, row.line, false]);
    row.since = null;
    return;
  }
  const last = row.runs[row.runs.length - 1];
  if (last && last[1] >= step - 0.01) last[1] = step + 1;
  else row.runs.push([step, step + 1]);
  if (w.kind === "barrier" && !w.name.includes("arrive")) {
    row.since = step + 0.5;
    row.line = w.source;
    row.runs[row.runs.length - 1][1] = step + 0.5;
  }
  if (w.kind === "exit") {
    row.exit = step;
    row.end = step + 1;
  }
}
