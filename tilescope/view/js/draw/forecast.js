// Prediction of a launch on a GPU: time, limiter, and the most effective changes.
import { el } from "./dom.js";
import { bytes } from "../model/format.js";

// Meanings of the short names of bounds.
const BOUNDS = {
  launch: "what any launch costs",
  latency: "waiting for memory and barriers",
  issue: "issuing instructions",
  int: "integer arithmetic",
  l1: "first cache, of a multiprocessor",
  l2: "second cache, of the GPU",
  shared: "shared memory",
  sfu: "special functions",
  fp32: "float arithmetic",
  fp64: "double arithmetic",
};

export function forecast(run, gpu) {
  const p = run.prediction;
  if (!p)
    return el("p", { class: "hint" }, "No prediction is on this page: a run without hazards has one; tilescope predict gives one for any GPU.");
  const other = p.name === gpu ? "" : ` There is no prediction for ${gpu} on this page.`;
  const most = Math.max(...Object.values(p.bounds));
  const bounds = Object.entries(p.bounds).sort(([, a], [, b]) => b - a);
  return el(
    "div",
    { class: "columns even" },
    el(
      "div",
      {},
      el("h3", {}, `Predicted for ${p.name}`),
      el(
        "p",
        { class: "answer" },
        `${time(p.time_ms)} (${time(p.low_ms)} to ${time(p.high_ms)}), limited by ${p.limiter}. DRAM: ${bytes(p.dram_read_bytes)} read, ${bytes(p.dram_write_bytes)} written${rate(", L1 hits", p.l1_hit_rate)}${rate(", L2 hits", p.l2_hit_rate)}.${other}`,
      ),
      p.advice.length ? el("p", {}, el("strong", {}, "What would help most")) : null,
      el(
        "ol",
        { class: "advice" },
        p.advice.map((a) => el("li", {}, a.text)),
      ),
    ),
    el(
      "table",
      { class: "held" },
      el("caption", { class: "sr" }, "Time that each part of the GPU would take by itself"),
      el(
        "tbody",
        {},
        bounds.map(([name, ms]) =>
          el(
            "tr",
            { class: name === p.limiter ? "limits" : null },
            el(
              "th",
              { scope: "row" },
              name === p.limiter ? `${name} \u25c2 limits` : name,
              BOUNDS[name] ? el("span", { class: "note" }, ` ${BOUNDS[name]}`) : null,
            ),
            el(
              "td",
              { class: "number" },
              el("span", {}, time(ms)),
              el("meter", { min: 0, max: most, value: ms, "aria-hidden": "true" }),
            ),
          ),
        ),
      ),
    ),
  );
}

function time(ms) {
  if (ms >= 1) return `${ms.toPrecision(3)} ms`;
  return ms >= 1e-3 ? `${(1e3 * ms).toPrecision(3)} \u00b5s` : `${(1e6 * ms).toPrecision(3)} ns`;
}

function rate(text, share) {
  return share === null ? "" : `${text} ${Math.round(100 * share)}%`;
}
