// The keys, in a dialog.
import { el } from "./dom.js";

const KEYS = [
  [["space"], "play, pause; at a hazard's moment: with the fix, without"],
  [["\u2190", "\u2192"], "a beat: a copy, a multiply-add, a barrier; a hazard's moments"],
  [["shift \u2190", "shift \u2192"], "a phase"],
  [["home", "end"], "the start, the end"],
  [["1", "2", "3", "4"], "the parts of the page"],
  [["t", "b"], "next thread, next block; with shift the one before"],
  [["arrows"], "in the arrays, once focused: move over cells; enter picks, page down goes to the next array"],
  [["d"], "light or dark"],
];

export function help() {
  const dialog = el(
    "dialog",
    { id: "keys", "aria-labelledby": "keys-title" },
    el("h2", { id: "keys-title" }, "Keys"),
    el("dl", {}, KEYS.flatMap(([keys, text]) => [el("dt", {}, keys.map((key) => el("kbd", {}, key))), el("dd", {}, text)])),
    el("button", { type: "button", class: "plain", onclick: () => dialog.close() }, "Close"),
  );
  return dialog;
}
