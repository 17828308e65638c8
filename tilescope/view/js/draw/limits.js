// Roofline and occupancy of the launch on a GPU, from its data sheet.
import { el, replace, setText } from "./dom.js";
import { bytes, list, plural } from "../model/format.js";
import { forecast } from "./forecast.js";
import { chart, flops, places } from "./roofline.js";

export class Limits {
  constructor(state) {
    this.state = state;
    const names = state.runs[0].limits.map((gpu) => gpu.name);
    const wanted = state.runs.find((run) => run.prediction)?.prediction.name ?? "A100";
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
          el("div", {}, el("h3", {}, "Roofline"), this.roofText, this.roof),
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
    this.drawHeld(run, about);
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
    const shown = this.state.runs.filter((other) => other.counters.flops);
    const points = shown.flatMap((other) => places(other, other.limits[this.gpu].roofline));
    const rows = points.map((p) => el("li", {}, `${p.text}: ${flops(p.y)}`));
    const wide = this.roof.clientWidth < 460 ? 360 : 560;
    replace(this.roof, chart(r, points, wide), el("ol", { class: "places" }, rows));
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

function taken(run, resource) {
  if (resource === "warps") return plural(run.warps, "warp");
  if (resource === "shared memory") return bytes(run.shared_bytes);
  return resource === "registers" ? "?" : "";
}

function percent(share) {
  return `${share < 0.1 ? (100 * share).toFixed(1) : Math.round(100 * share)}%`;
}
