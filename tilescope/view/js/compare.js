// Two runs beside each other: what the second one changes, hazards first.
import { el } from "./dom.js";
import { count, times } from "./format.js";

const ROWS = [
  ["global loads", (c) => c.global_load.accesses],
  ["requests for global memory", (c) => sum(c, "global", "requests")],
  ["sectors of global memory", (c) => sum(c, "global", "sectors")],
  ["wavefronts of shared memory", (c) => sum(c, "shared", "wavefronts")],
  ["bank conflicts", (c) => sum(c, "shared", "bank_conflicts")],
  ["FLOPs", (c) => c.flops],
  ["warp instructions", (c) => c.warp_instructions],
];

function sum(counters, space, name) {
  return ["load", "store", "atomic"].reduce(
    (n, kind) => n + (counters[`${space}_${kind}`]?.[name] ?? 0),
    0,
  );
}

// What the second run does to the traffic of the first, in a sentence.
export function headline([one, two]) {
  const [a, b] = [one, two].map((run) => run.counters.global_load.accesses);
  if (!a || !b || a === b) return `${one.name} and ${two.name} load as often from global memory.`;
  const [more, less, name, other] = a > b ? [a, b, two.name, one.name] : [b, a, one.name, two.name];
  const ratio = more / less;
  return `${name} loads ${Number.isInteger(ratio) ? times(ratio) : `${ratio.toFixed(1)}\u00d7`} less often from global memory than ${other}: ${count(less)} against ${count(more)}.`;
}

// Hazards of both, and the counters that differ.
export function differences(runs) {
  const [one, two] = runs;
  const rows = ROWS.map(([text, of]) => [text, of(one.counters), of(two.counters)]).filter(
    ([, a, b]) => a !== b,
  );
  const [a, b] = runs.map((run) => run.prediction?.time_ms);
  if (a && b) rows.push([`predicted for ${one.prediction.name}, \u00b5s`, 1000 * a, 1000 * b]);
  const number = (n) => (Number.isInteger(n) ? count(n) : n.toPrecision(3));
  return el(
    "table",
    { class: "held differences", id: "differences" },
    el("caption", { class: "sr" }, "What differs between the two runs"),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        ["counted", one.name, two.name, "that is"].map((text) => el("th", { scope: "col" }, text)),
      ),
    ),
    el(
      "tbody",
      {},
      el(
        "tr",
        {},
        el("th", { scope: "row" }, "hazards"),
        runs.map((run) => el("td", {}, hazardsOf(run))),
        el("td", {}, ""),
      ),
      rows.map(([text, x, y]) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, text),
          [x, y].map((n) => el("td", {}, number(n))),
          el("td", {}, x && y ? change(x, y) : ""),
        ),
      ),
      rows.length ? null : el("tr", {}, el("td", { colspan: 4 }, "All counters are the same.")),
    ),
  );
}

function change(x, y) {
  const ratio = Math.max(x, y) / Math.min(x, y);
  return `${+ratio.toPrecision(3)}\u00d7 ${y < x ? "less" : "more"}`;
}

function hazardsOf(run) {
  const kinds = new Map();
  for (const { kind, severity } of run.hazards)
    if (severity !== "note") kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  return [...kinds].map(([kind, n]) => `${n} ${kind}`).join(", ") || run.clean;
}
