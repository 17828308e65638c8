// The hazards that were found, a card each: what, where, the fix as a diff, the way to its moment.
import { el, replace, setText } from "./dom.js";
import { count } from "./format.js";
import { momentOf } from "./hazards.js";
import { diff } from "./panels.js";

export class Cards {
  constructor(state) {
    this.state = state;
    this.root = el("div", { id: "findings" });
    this.missing = el("p", { class: "hint", role: "status", hidden: true });
  }

  draw(run) {
    const key = `${run.number}:${this.state.hazard ? this.state.hazard.number : ""}`;
    if (this.hazardKey === key) return;
    this.hazardKey = key;
    if (!run.hazards.length) {
      const checked = run.checks.length
        ? `None found. Checked: ${run.checks.join(", ")}.`
        : "Not checked: this run was made without checks.";
      replace(this.root, el("p", {}, checked));
      return;
    }
    const groups = new Map();
    run.hazards.forEach((hazard, number) => {
      const key = JSON.stringify([
        hazard.kind,
        hazard.severity,
        hazard.variable,
        hazard.involved.map((item) => [item.role, item.line || item.ptx_line]),
      ]);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(number);
    });
    // Errors first; of them races, and of these the ones with a fix.
    const rank = ([number]) => {
      const { severity, race, fix_text: fix } = run.hazards[number];
      return (severity === "error" ? 0 : 4) + (race ? 0 : 2) + (fix ? 0 : 1);
    };
    const sorted = [...groups.values()].sort((a, b) => rank(a) - rank(b));
    replace(
      this.root,
      this.missing,
      together(run, sorted).map(([first, ...others]) =>
        this.card(run, run.hazards[first[0]], first[0], first.length - 1, others),
      ),
    );
  }

  card(run, hazard, number, more, others) {
    const on =
      this.state.hazard &&
      [number, ...others.map((one) => one[0])].includes(this.state.hazard.number) &&
      this.state.hazard.run === run.number;
    const rows = hazard.involved.map((item, i) =>
      el(
        "li",
        {},
        el("b", {}, `${"\u2460\u2461\u2462"[i] ?? ""} ${item.role}`),
        ` line ${item.line || item.ptx_line}`,
        el("code", {}, item.code || item.instruction),
      ),
    );
    return el(
      "article",
      { class: `finding ${hazard.severity}${on ? " on" : ""}` },
      el("h3", {}, el("span", { class: "tag" }, hazard.severity), " ", hazard.title),
      hazard.title === hazard.message ? null : el("p", {}, `${hazard.message}.`),
      el("ol", {}, rows),
      el("p", {}, howOften(hazard, more)),
      hazard.fix_text ? el("p", { class: "fix" }, `Fix: ${hazard.fix_text}`) : null,
      hazard.fix_diff.length ? diff(hazard.fix_diff) : null,
      hazard.notes.map((note) => el("p", { class: "hint" }, note)),
      hazard.follows.map((other) => el("p", { class: "hint" }, `Follows from it: ${other.title}`)),
      el(
        "button",
        { type: "button", class: "jump", onclick: () => this.jump(run, number) },
        "Go to the moment",
      ),
      others.length ? el("p", { class: "mended" }, "The same fix removes") : null,
      others.map(([other]) => this.also(run, run.hazards[other], other)),
    );
  }

  // Another hazard that a card's fix removes.
  also(run, hazard, number) {
    return el(
      "div",
      { class: "also" },
      el("span", { class: "tag" }, hazard.severity),
      ` ${hazard.message} `,
      el(
        "button",
        { type: "button", class: "jump", onclick: () => this.jump(run, number) },
        "Go to the moment",
      ),
    );
  }

  jump(run, number) {
    const moment = momentOf(run, number);
    if (!moment) {
      setText(this.missing, "The steps of this hazard are not among those recorded.");
      this.missing.hidden = false;
      return;
    }
    this.state.update({
      view: "steps",
      run: run.number,
      block: moment.block,
      thread: moment.thread,
      mode: "all",
      step: moment.step,
      hazard: { ...moment, number },
    });
  }
}

// Groups of hazards that one fix removes, side by side; the others alone.
function together(run, groups) {
  const cards = new Map();
  for (const numbers of groups) {
    const fix = run.hazards[numbers[0]].fix_group;
    const key = fix < 0 ? `alone ${numbers[0]}` : fix;
    if (!cards.has(key)) cards.set(key, []);
    cards.get(key).push(numbers);
  }
  return [...cards.values()];
}

function howOften(hazard, more) {
  const number = count(hazard.count);
  const said = hazard.notes.some((note) => note.startsWith(`${number} `));
  const often = said ? "" : `${number} ${hazard.race ? "pairs of threads" : "times"}.`;
  return `${often}${more ? ` ${count(more)} more like this, on other elements.` : ""}`.trim();
}
