// What a GPU would make of the launch: roofline and occupancy, from its data sheet.
import { el, replace, setText, svg } from "./dom.js";
import { bytes, list, plural } from "./format.js";

const W = 560;
const H = 300;
const [LEFT, RIGHT, TOP, BOTTOM] = [62, 14, 12, 40];

export class Limits {
  constructor(state) {
    this.state = state;
    const names = state.runs[0].limits.map((gpu) => gpu.name);
    const start = Math.max(
      0,
      names.findIndex((name) => name.startsWith("A100")),
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
    this.root = el(
      "div",
      {},
      el(
        "section",
        { class: "panel", "aria-label": "On a GPU" },
        el(
          "div",
          { class: "bar" },
          el("h2", {}, "On a GPU"),
          el("label", { for: "gpu" }, "Which "),
          this.select,
          el("span", { class: "note" }, "peaks as its data sheet has them; nothing was measured"),
        ),
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
    replace(this.roof, chart(r, points));
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

function flops(rate) {
  return rate >= 1e12
    ? `${(rate / 1e12).toPrecision(3)} TFLOP/s`
    : `${(rate / 1e9).toPrecision(3)} GFLOP/s`;
}

function percent(share) {
  return `${share < 0.1 ? (100 * share).toFixed(1) : Math.round(100 * share)}%`;
}

// Two places of a run: memory without caches, and every array moved once.
function places(run, r) {
  const made = [];
  const add = (intensity, bound, what, shape) => {
    const found = r.bounds.find((b) => b.name === bound);
    if (intensity && found?.flops)
      made.push({ x: intensity, y: found.flops, text: `${run.name}, ${what}`, shape });
  };
  add(r.intensity_no_caches, r.bound_by_no_caches, "no caches", "dot");
  add(r.intensity_arrays_once, r.bound_by, "arrays once", "ring");
  return made;
}

function chart(r, points) {
  const ridge = r.peak_flops / r.bandwidth;
  const xs = [0.1, ridge * 8, ...points.map((p) => p.x / 2), ...points.map((p) => p.x * 3)];
  const ys = [r.peak_flops * 1.6, r.bandwidth * 0.05, ...points.map((p) => p.y / 2)];
  const [x0, x1] = [Math.log10(Math.min(...xs)), Math.log10(Math.max(...xs))];
  const [y0, y1] = [Math.log10(Math.min(...ys)), Math.log10(Math.max(...ys))];
  const X = (x) => LEFT + ((Math.log10(x) - x0) / (x1 - x0)) * (W - LEFT - RIGHT);
  const Y = (y) => H - BOTTOM - ((Math.log10(y) - y0) / (y1 - y0)) * (H - TOP - BOTTOM);
  const parts = [];
  for (let p = Math.ceil(x0); p <= x1; p++)
    parts.push(
      ...tick(X(10 ** p), null, 10 ** p >= 1 ? String(10 ** p) : String(+(10 ** p).toFixed(3))),
    );
  for (let p = Math.ceil(y0); p <= y1; p++)
    parts.push(
      ...tick(
        null,
        Y(10 ** p),
        flops(10 ** p)
          .replace(/\.?0* /, " ")
          .replace("FLOP/s", ""),
      ),
    );
  parts.push(
    svg("polyline", {
      class: "roof",
      points: `${X(10 ** x0)},${Y(r.bandwidth * 10 ** x0)} ${X(ridge)},${Y(r.peak_flops)} ${X(10 ** x1)},${Y(r.peak_flops)}`,
    }),
  );
  parts.push(
    svg(
      "text",
      { x: W - RIGHT, y: Y(r.peak_flops) - 5, "text-anchor": "end", class: "axis" },
      `peak ${flops(r.peak_flops)}`,
    ),
  );
  parts.push(
    svg(
      "text",
      { x: (LEFT + W) / 2, y: H - 6, "text-anchor": "middle", class: "axis" },
      "FLOP per byte of memory",
    ),
  );
  points.forEach((point, i) =>
    parts.push(...place(X(point.x), Y(point.y), point, i, points.length)),
  );
  return svg(
    "svg",
    {
      viewBox: `0 0 ${W} ${H}`,
      class: "roofline",
      role: "img",
      "aria-label": points
        .map((p) => `${p.text}: ${flops(p.y)} at ${p.x.toPrecision(3)} FLOP per byte`)
        .join("; "),
    },
    parts,
  );
}

function tick(x, y, text) {
  if (x !== null)
    return [
      svg("line", { x1: x, x2: x, y1: TOP, y2: H - BOTTOM, class: "grid-line" }),
      svg("text", { x, y: H - BOTTOM + 14, "text-anchor": "middle", class: "axis" }, text),
    ];
  return [
    svg("line", { x1: LEFT, x2: W - RIGHT, y1: y, y2: y, class: "grid-line" }),
    svg("text", { x: LEFT - 5, y: y + 4, "text-anchor": "end", class: "axis" }, text),
  ];
}

function place(x, y, point, i, count) {
  const labelY = H - BOTTOM - 10 - 15 * (count - 1 - i);
  const right = x < W * 0.55;
  return [
    svg("line", { x1: x, x2: x, y1: y, y2: labelY, class: "lead" }),
    svg("circle", { cx: x, cy: y, r: 5, class: point.shape === "dot" ? "point" : "point hollow" }),
    svg(
      "text",
      {
        x: right ? x + 5 : x - 5,
        y: labelY,
        "text-anchor": right ? "start" : "end",
        class: "axis strong",
      },
      `${point.text}: ${flops(point.y)}`,
    ),
  ];
}
