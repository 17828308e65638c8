// A hazard's moment on the stage: the hooks of player, code and timeline, and the fixed run beside it.
import { el } from "../draw/dom.js";
import { Lens } from "../draw/lens.js";
import { HUES } from "../model/story.js";
import { openMoment } from "../layout/opening.js";

export const DISCS = ["\u2460", "\u2461", "\u2462"];

// Parts of a sentence as Python has them: text with a hue, -1 for plain, -2 for bold text.
export function coloured(parts) {
  return parts.map(([text, hue]) => (hue >= 0 ? [text, HUES[hue]] : hue === -2 ? [text, "strong"] : [text]));
}

export class Moment {
  constructor(state, label) {
    this.state = state;
    this.lens = new Lens(label);
    this.head = el("h3", {});
    this.ran = el("button", { type: "button", onclick: () => this.show(false) }, "as it ran");
    this.mended = el("button", { type: "button", onclick: () => this.show(true) }, "with the fix");
    this.choice = el("span", { class: "seg", role: "group", "aria-label": "Which run" }, this.ran, this.mended);
    this.root = el("div", { class: "moment-lens" }, el("div", { class: "moment-head" }, this.head, this.choice), this.lens.root);
    this.panel = el("section", { class: "thread moment-panel", "aria-label": "What happens" });
  }

  // The run with the race, also while the fixed run is shown.
  get base() {
    const { state } = this;
    return state.fixed ? state.runs.find((run) => run.fixed === state.run) : state.now;
  }

  get moment() {
    return this.base.story.moments[this.state.moment];
  }

  get hazard() {
    return this.base.hazards[this.moment.hazard];
  }

  get hasFix() {
    const fixed = this.state.runs[this.base.fixed];
    return Boolean(fixed?.recorded.includes(this.moment.block));
  }

  get fixName() {
    return this.hazard.fix_text.includes("__syncthreads") ? "the barrier" : "the fix";
  }

  // The position in the fixed run that corresponds to the moment.
  twin() {
    return this.moment.step + 1;
  }

  show(fixed) {
    const { state, moment, base } = this;
    if (!fixed) return openMoment(Object.assign(state, { run: base.number }), state.moment);
    if (!this.hasFix) return undefined;
    const pos = this.twin();
    state.fixed = true;
    state.update({ run: base.fixed, block: moment.block, thread: moment.thread, pos });
    return undefined;
  }

  flip() {
    if (this.hasFix) this.show(!this.state.fixed);
    else this.state.update({ moment: -1, pos: 0 }); // plays the block from its start
    return this.hasFix;
  }

  turn(direction) {
    const { base, state } = this;
    if (base.story.moments.length < 2) {
      if (!state.fixed) state.moment = -1; // steps on from here
      return state.fixed;
    }
    const next = state.moment + direction;
    if (base.story.moments[next]) openMoment(Object.assign(state, { run: base.number }), next);
    return true;
  }

  label() {
    if (!this.hasFix) return undefined;
    return this.state.fixed ? "\u25b6 As it ran" : `\u25b6 With ${this.fixName}`;
  }

  name(thread) {
    return this.base.threadName(thread);
  }

  count() {
    return `moment ${this.state.moment + 1} of ${this.base.story.moments.length}: ${this.moment.kind}`;
  }

  title() {
    const { moment: m } = this;
    return { title: coloured(m.title), more: [[m.more]] };
  }

  sentence() {
    return coloured(this.moment.say);
  }

  marks() {
    if (this.state.fixed) return [];
    return this.moment.tags.map(([step, warp], i) => ({ step, warp, text: String(i + 1) })).filter(({ step }) => step >= 0);
  }

  // Lines of the accesses, and the lines that the fix adds.
  codeMarks() {
    const { hazard } = this;
    const found = new Map();
    if (hazard.fix_text) found.proof = "the fix is verified by running it";
    if (this.state.fixed) return found;
    this.moment.tags.forEach(([, , line, text], i) => {
      const known = found.get(line);
      found.set(line, { cls: i ? "second" : "first", tag: `${known ? `${known.tag}; ` : ""}${DISCS[i]} ${text}` });
    });
    const added = hazard.fix_diff.filter((line) => line.startsWith("+") && !line.startsWith("+++")).map((line) => line.slice(1).trim());
    if (hazard.fix_line && added.length) {
      const mark = found.get(hazard.fix_line) ?? {};
      found.set(hazard.fix_line, { ...mark, [hazard.fix_text.includes("before line") ? "before" : "after"]: added.join(" ") });
    }
    return found;
  }

  line() {
    return "";
  }

  heading(...parts) {
    const { state } = this;
    this.head.replaceChildren(...parts);
    this.ran.setAttribute("aria-pressed", String(!state.fixed));
    this.mended.setAttribute("aria-pressed", String(state.fixed));
    this.mended.textContent = `with ${this.fixName}`;
    this.choice.hidden = !this.hasFix;
  }
}
