// Roofline of a GPU: attainable rate over intensity, and the numbered points of runs.
import { svg } from "./dom.js";

const H = 300;
const [LEFT, RIGHT, TOP, BOTTOM] = [62, 14, 12, 40];

export function flops(rate) {
  return rate >= 1e12
    ? `${(rate / 1e12).toPrecision(3)} TFLOP/s`
    : `${(rate / 1e9).toPrecision(3)} GFLOP/s`;
}

// Two places of a run: memory without caches, and every array moved once.
export function places(run, r) {
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

// A point for each level of memory, at the rate of the predicted time.
export function levelPlaces(run) {
  return run.levels
    .filter((level) => level.used && level.name !== "shared memory")
    .map((level) => ({ x: level.intensity, y: run.prediction.flops, text: `${run.name}, ${level.name}`, shape: level.name === "DRAM" ? "dot" : "ring", run: run.number }));
}

// roofs: bandwidths of levels, as { name, rate }; DRAM's is always drawn.
export function chart(r, points, W, roofs = []) {
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
      ...tick(W, X(10 ** p), null, 10 ** p >= 1 ? String(10 ** p) : String(+(10 ** p).toFixed(3))),
    );
  for (let p = Math.ceil(y0); p <= y1; p++)
    parts.push(
      ...tick(
        W,
        null,
        Y(10 ** p),
        p >= 12 ? `${10 ** (p - 12)} T` : `${+(10 ** (p - 9)).toFixed(3)} G`,
      ),
    );
  parts.push(
    svg("polyline", {
      class: "roof",
      points: `${X(10 ** x0)},${Y(r.bandwidth * 10 ** x0)} ${X(ridge)},${Y(r.peak_flops)} ${X(10 ** x1)},${Y(r.peak_flops)}`,
    }),
  );
  for (const { name, rate } of roofs) {
    const turn = Math.min(10 ** x1, r.peak_flops / rate);
    if (turn > 10 ** x0) parts.push(svg("polyline", { class: "roof level", points: `${X(10 ** x0)},${Y(rate * 10 ** x0)} ${X(turn)},${Y(rate * turn)}` }));
    const at = 10 ** (x0 + 0.04 * (x1 - x0));
    const [x, y] = [X(at), Y(rate * at)];
    const slope = (Math.atan2(Y(10 * rate * at) - y, X(10 * at) - x) * 180) / Math.PI;
    const below = rate === r.bandwidth ? 13 : -4; // DRAM's name stands below its roof, the others' above
    parts.push(svg("text", { transform: `translate(${x} ${y}) rotate(${slope}) translate(0 ${below})`, class: "axis roof-name" }, `${name} ${(rate / 1e12).toPrecision(2)} TB/s`));
  }
  for (const run of new Set(points.map((point) => point.run))) {
    const own = points.filter((point) => point.run === run && run !== undefined);
    if (own.length > 1) parts.push(svg("polyline", { class: "joined", points: own.map((p) => `${X(p.x)},${Y(p.y)}`).join(" ") }));
  }
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
  const spots = points.map((point) => [X(point.x), Y(point.y)]);
  const taken = [...spots];
  points.forEach((point, i) => parts.push(...place(W, ...spots[i], point, i, taken)));
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

function tick(W, x, y, text) {
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

// A point, and its number at a free place, which is added to `taken`.
function place(W, x, y, point, i, taken) {
  const around = [1, 2, 3].flatMap((far) =>
    [
      [13, 13],
      [-13, 13],
      [13, -11],
      [-13, -11],
    ].map(([dx, dy]) => [x + far * dx, y + far * dy]),
  );
  const free = ([px, py]) =>
    px > LEFT + 6 &&
    px < W - RIGHT - 6 &&
    py > TOP + 6 &&
    py < H - BOTTOM - 6 &&
    taken.every(([tx, ty]) => Math.hypot(px - tx, py - ty) > 11);
  const [px, py] = around.find(free) ?? around[0];
  taken.push([px, py]);
  return [
    svg("line", { x1: x, x2: px, y1: y, y2: py, class: "lead" }),
    svg("circle", { cx: x, cy: y, r: 5, class: point.shape === "dot" ? "point" : "point hollow" }),
    svg(
      "text",
      { x: px, y: py + 4, "text-anchor": "middle", class: "axis strong number-of" },
      String(i + 1),
    ),
  ];
}
