// The hazards: title, places, the fix as a diff, and a button that leads to the moment.
import { el, replace } from "./dom.js";
import { count } from "../model/format.js";

export class Findings {
  // go(number): to a moment.
  constructor(state, go) {
    this.state = state;
    this.go = go;
    this.root = el("section", { class: "findings", id: "findings", "aria-label": "Hazards" });
    this.key = -1;
  }

  draw() {
    const { state } = this;
    const run = state.now;
    if (this.key === state.run) return;
    this.key = state.run;
    this.root.hidden = !run.hazards.length;
    replace(this.root, el("h3", {}, run.found), grouped(run).map((numbers) => this.card(run, numbers)));
  }

  card(run, [number, ...others]) {
    const hazard = run.hazards[number];
    return el(
      "article",
      { class: `finding ${hazard.severity}` },
      el("h4", {}, el("span", { class: "severity" }, hazard.severity), " ", quoted(hazard.title)),
      el("ol", {}, hazard.involved.map((item, i) => el("li", {}, el("b", {}, `${"\u2460\u2461\u2462"[i] ?? ""} ${item.role}`), ` line ${item.line || item.ptx_line} `, el("code", {}, item.code || item.instruction)))),
      el("p", { class: "mute" }, howOften(hazard)),
      hazard.fix_text ? el("p", { class: "fix" }, `Fix: ${hazard.fix_text}`) : null,
      hazard.fix_diff.length ? el("pre", { class: "diff", tabindex: 0, role: "group", "aria-label": "The fix as a diff" }, hazard.fix_diff.map((line) => el("span", { class: line[0] === "+" ? "plus" : line[0] === "-" ? "minus" : null }, `${line}\n`))) : null,
      hazard.notes.map((note) => el("p", { class: "mute" }, note)),
      hazard.follows.map((other) => el("p", { class: "mute" }, `Follows from it: ${other.title}`)),
      this.button(run, number),
      others.map((other) => el("p", { class: "mute" }, `The same fix mends: ${run.hazards[other].message} `, this.button(run, other))),
    );
  }

  // Leads to the moment of a hazard; one of the whole launch has none.
  button(run, hazard) {
    const moment = run.story.moments.findIndex((one) => one.hazard === hazard);
    return moment < 0 ? null : el("button", { type: "button", class: "plain", onclick: () => this.go(moment) }, "Go to the moment");
  }
}

// A report's text, with what it has in backticks as code.
function quoted(text) {
  return text.split("`").map((part, i) => (i % 2 ? el("code", {}, part) : part));
}

// Errors first, races before others; hazards that one fix mends together.
function grouped(run) {
  const rank = (n) => (run.hazards[n].severity === "error" ? 0 : 4) + (run.hazards[n].race ? 0 : 2) + (run.hazards[n].fix_text ? 0 : 1);
  const groups = new Map();
  [...run.hazards.keys()].sort((a, b) => rank(a) - rank(b)).forEach((n) => {
    const { fix_group: group } = run.hazards[n];
    const key = group < 0 ? `alone ${n}` : group;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(n);
  });
  return [...groups.values()];
}

function howOften(hazard) {
  const number = count(hazard.count);
  const said = hazard.notes.some((note) => note.includes(`${number} `) || note === "once");
  return said ? "" : `${number} ${hazard.race ? "pairs of threads" : hazard.count === 1 ? "time" : "times"}.`;
}
