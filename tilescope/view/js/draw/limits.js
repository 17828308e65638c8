// Roofline and occupancy of the launch on a GPU, from its data sheet.
import { el, replace, setText } from "./dom.js";
import { bytes, list, plural } from "../model/format.js";
import { forecast } from "./forecast.js";
import { chart, flops, levelPlaces, places } from "./roofline.js";

export class Limits {
  constructor(state) {
    this.state = state;
    const names = state.runs[0].limits.map((gpu) => gpu.name);
    const wanted = state.runs.find((run) => run.prediction)?.prediction.name ?? "H200";
    const start = Math.max(
      0,
      names.findIndex((name) => name.startsWith(wanted)),
    );
    this.gpu = start;
    this.select = el(
      "select",
      { id: "gpu", onchange: () => this.choose() },
      names.map((name, i) => el("option", { value: i, selected: i === start }, name)),
    );
    this.roof = el("div", {
      class: "picture",
      tabindex: 0,
      role: "group",
      "aria-label": "Roofline",
    });
    this.roofText = el("p", { class: "answer", id: "roofline" });
    this.heldText = el("p", { class: "answer", id: "occupancy" });
    this.held = el("table", { class: "held" });
    this.told = el("div", { class: "told", id: "prediction" });
    this.root = el(
      "div",
      {},
      el(
        "div",
        {},
        el(
          "div",
          { class: "gpu-row" },
          el("label", { for: "gpu", class: "sr" }, "Which GPU"),
          this.select,
          el("span", { class: "note" }, "peaks as its data sheet has them; nothing was measured"),
        ),
        this.told,
        el(
          "div",
          { class: "columns even" },
          el("div", {}, el("h3", {}, "Roofline"), this.roofText, this.roof, (this.ladder = el("div", {}))),
          el("div", {}, el("h3", {}, "Occupancy"), this.heldText, this.held),
        ),
      ),
    );
  }

  choose() {
    this.gpu = Number(this.select.value);
    this.draw(this.state.now);
  }

  draw(run) {
    const about = run.limits[this.gpu];
    replace(this.told, forecast(run, about.name));
    this.drawRoof(run, about);
    this.drawLadder(about);
    this.drawHeld(run, about);
  }

  // Bytes of each level of memory, of all runs to one scale.
  drawLadder(about) {
    const shown = this.state.runs.filter((run) => !run.hidden && run.levels.length && run.prediction.name === about.name);
    const rows = (shown[0]?.levels ?? []).map((level, i) => ({ level, all: shown.map((run) => run.levels[i].bytes) })).filter(({ all }) => Math.max(...all) > 0);
    const most = Math.max(1, ...rows.flatMap(({ all }) => all));
    replace(this.ladder, shown.length ? [
      el("h3", {}, "Bytes at each level of memory"),
      el("div", { class: "bars ladder" }, rows.flatMap(({ level, all }) => all.map((n, k) => el("div", { class: "bar-row" },
        el("span", {}, k ? "" : el("b", {}, level.name), k ? shown[k].name : el("small", {}, ` ${level.what}${shown.length > 1 ? `: ${shown[0].name}` : ""}`)),
        el("span", { class: "bar-line" }, el("i", { style: `width: ${Math.max(0.5, (60 * n) / most)}%; background: var(--${k ? "hatch" : "faint"})` }), el("b", { class: "number" }, bytes(Math.round(n)))))))),
      el("p", { class: "mute" }, "L2 and DRAM are predicted for empty caches; the rest is counted."),
    ] : "");
  }

  drawRoof(run, { roofline: r, name }) {
    if (!run.counters.flops) {
      setText(
        this.roofText,
        "This launch does no floating-point arithmetic: it has no place under the roofline.",
      );
      replace(this.roof);
      return;
    }
    const rate = (bound) => r.bounds.find((b) => b.name === bound)?.flops ?? 0;
    const low = rate(r.bound_by_no_caches);
    const high = rate(r.bound_by);
    setText(
      this.roofText,
      `${run.name} on ${name}: at most ${flops(low)} (${percent(low / r.peak_flops)} of the peak) if no cache ever helps, bound by ${r.bound_by_no_caches.split(",")[0]}; at most ${flops(high)} if each array moves once, bound by ${r.bound_by.split(",")[0]}.`,
    );
    const shown = this.state.runs.filter((other) => other.counters.flops && !other.hidden);
    const predicted = shown.every((other) => other.levels.length && other.prediction.name === name);
    const points = shown.flatMap((other) => (predicted ? levelPlaces(other) : places(other, other.limits[this.gpu].roofline)));
    const roofs = predicted ? run.levels.filter((level) => ["L1", "L2", "DRAM"].includes(level.name)) : [];
    if (predicted) setText(this.roofText, explained(run, name));
    const rows = points.map((p) => el("li", {}, `${p.text}: ${predicted ? `${+p.x.toPrecision(3)} FLOP per byte` : flops(p.y)}`));
    const wide = this.roof.clientWidth < 460 ? 360 : 560;
    replace(this.roof, chart(r, points, wide, roofs), el("ol", { class: "places" }, rows));
  }

  drawHeld(run, { occupancy: o, name }) {
    const open = o.complete
      ? ""
      : " Registers a thread are for the driver's compiler to say, so this is an upper bound.";
    const none = o.blocks_per_sm === 0 ? " The launch does not fit." : "";
    setText(
      this.heldText,
      `${plural(o.blocks_per_sm, "block")} of ${plural(run.threads, "thread")} fit on a multiprocessor of ${name}: ${o.warps_per_sm} of ${o.most_warps} warps, ${percent(o.share)}; limited by ${list(o.limiters)}.${none}${open}`,
    );
    const most = Math.max(1, ...Object.values(o.limits).map((limit) => limit ?? 0));
    replace(
      this.held,
      el("caption", { class: "sr" }, "Blocks that each resource allows"),
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          ["Resource", "A block takes", "Blocks it allows"].map((text) =>
            el("th", { scope: "col" }, text),
          ),
        ),
      ),
      el(
        "tbody",
        {},
        Object.entries(o.limits).map(([resource, limit]) =>
          el(
            "tr",
            { class: o.limiters.includes(resource) ? "limits" : null },
            el(
              "th",
              { scope: "row" },
              o.limiters.includes(resource) ? `${resource} \u25c2 limits` : resource,
            ),
            el("td", {}, taken(run, resource)),
            el(
              "td",
              { class: "number" },
              limit === null
                ? "not known"
                : [
                    el("span", {}, String(limit)),
                    el("meter", { min: 0, max: most, value: limit, "aria-hidden": "true" }),
                  ],
            ),
          ),
        ),
      ),
    );
  }
}

// Where the predicted rate stands under the levels' roofs.
function explained(run, name) {
  const rate = run.prediction.flops;
  const nearest = run.levels.reduce((a, b) => (a.used > b.used ? a : b));
  const share = nearest.used ? ` The nearest roof is that of ${nearest.name}: ${percent(nearest.used)} of it is used.` : "";
  return `${run.name} on ${name}: ${flops(rate)} at the predicted time, ${percent(rate / run.limits.find((one) => one.name === name).roofline.peak_flops)} of the peak. Each point is one level of memory at its FLOP per byte.${share}`;
}

function taken(run, resource) {
  if (resource === "warps") return plural(run.warps, "warp");
  if (resource === "shared memory") return bytes(run.shared_bytes);
  return resource === "registers" ? "?" : "";
}

function percent(share) {
  return `${share < 0.1 ? (100 * share).toFixed(1) : Math.round(100 * share)}%`;
}
