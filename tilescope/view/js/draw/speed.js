// The launch on a GPU: predicted time, tile sizes, roofline, occupancy.
import { el, replace, svg } from "./dom.js";
import { bytes } from "../model/format.js";
import { Limits } from "./limits.js";

export class Speed {
  constructor(state) {
    this.state = state;
    this.limits = new Limits(state);
    this.root = el("section", { class: "part", id: "speed", "aria-labelledby": "speed-title" }, el("h2", { id: "speed-title" }, "Speed"), (this.tiles = el("div", { class: "scroll" })), this.limits.root);
  }

  // Steps change nothing here.
  draw() {
    const run = this.state.now;
    const key = `${run.number}:${this.root.clientWidth}`;
    if (key === this.key) return;
    this.key = key;
    replace(this.tiles, run.tiles.length ? table(run) : "");
    this.limits.draw(run);
  }
}

const LIMITERS = { shared: "shared memory", l1: "L1 cache", l2: "L2 cache", dram: "DRAM" };

// Resources and predicted time of each tile size, for one problem size and one GPU.
function table(run) {
  const rows = run.tiles;
  const most = Math.max(...rows.map((row) => row.high));
  const here = Number(/tile (\d+)/.exec(run.note)?.[1] ?? 0);
  const heads = ["tile", "threads a block", "shared memory a block", "global loads", "FLOP a byte", "warps active", "predicted time (nine in ten)", "limited by"];
  const time = (row) => {
    const X = (ms) => (ms / most) * 150;
    return svg("svg", { width: 230, height: 20, role: "img", "aria-label": `${microseconds(row.time)}, nine in ten from ${microseconds(row.low)} to ${microseconds(row.high)}` },
      svg("rect", { x: X(row.low), y: 8, width: Math.max(1, X(row.high) - X(row.low)), height: 4, style: "fill: var(--hatch)" }),
      svg("circle", { cx: X(row.time), cy: 10, r: 5, style: "fill: var(--ink)" }),
      svg("text", { x: X(row.high) + 8, y: 15 }, microseconds(row.time)));
  };
  return el("table", { class: "tiles" },
    el("caption", { class: "sr" }, "Tile sizes"),
    el("thead", {}, el("tr", {}, heads.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, rows.map((row) => el("tr", { class: row.tile === here ? "here" : null },
      el("td", {}, String(row.tile)), el("td", { class: "n" }, String(row.threads)), el("td", {}, bytes(row.shared ?? 0)),
      el("td", {}, (row.loads ?? 0).toLocaleString("en-US")), el("td", {}, (row.intensity ?? 0).toFixed(2)),
      el("td", {}, `${Math.round(100 * row.active)}%`), el("td", {}, time(row)), el("td", {}, LIMITERS[row.limiter] ?? row.limiter)))));
}

function microseconds(ms) {
  return `${(1000 * ms).toPrecision(3)} \u00b5s`;
}
