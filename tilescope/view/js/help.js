// The keys, and what the page shows.
import { el } from "./dom.js";

const KEYS = [
  ["\u2190 \u2192", "a step back, a step on"],
  ["shift \u2190 \u2192", "a phase back, a phase on"],
  ["home, end", "the first step, the last"],
  ["space", "play, pause"],
  ["1 2 3 4", "arrays, steps, barriers, memory"],
  ["t", "light, dark"],
  ["?", "this"],
  ["tab, then arrows", "inside a grid: move over its cells; enter picks"],
];

export function help() {
  const dialog = el(
    "dialog",
    { id: "help", "aria-labelledby": "help-title" },
    el("h2", { id: "help-title" }, "Keys"),
    el(
      "dl",
      {},
      KEYS.flatMap(([key, text]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)]),
    ),
    el(
      "p",
      {},
      "Everything here is a recorded run of the kernel's PTX on the simulator. A step is one execution of an instruction that touches memory, computes from loaded data, or is a barrier; address arithmetic and loop control are left out. The schedule is one that a GPU may take, not the one it will take.",
    ),
    el("form", { method: "dialog" }, el("button", {}, "Close")),
  );
  return dialog;
}
