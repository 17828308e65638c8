// Beside the steps: how the picked thread's value grew, and the hazard at hand.
import { el, replace, setText } from "./dom.js";
import { count, plural } from "./format.js";
import { expression, nameOf, result } from "./thread.js";

const MOST = 64;
const MOST_EVENTS = 12;

export class Growth {
  constructor() {
    this.list = el("ol", {
      class: "growth",
      id: "growth",
      tabindex: 0,
      "aria-label": "How the value grew",
    });
    this.title = el("h2", { id: "growth-title", class: "sub" });
    this.root = el(
      "section",
      { class: "panel grown", "aria-labelledby": "growth-title" },
      this.title,
      this.list,
    );
  }

  draw(run, thread, step) {
    const chain = thread.growth(step);
    const last = chain[chain.length - 1];
    const who = run.threadName(thread.thread);
    setText(
      this.title,
      last
        ? `${nameOf(run, last)} of ${who} so far: ${result(last)}`
        : `${who} has computed nothing yet`,
    );
    replace(
      this.list,
      chain.slice(-MOST).map((item) => row(run, item, item === last && item.step === step)),
    );
    this.root.hidden = !thread.items.some((item) => item.depth); // it never computes anything
    this.list.scrollTop = this.list.scrollHeight;
  }
}

function row(run, item, now) {
  return el(
    "li",
    { class: now ? "now" : null, "data-value": String(item.values[0]) },
    el("span", { class: "names" }, expression(run, item, false)),
    el("span", {}, expression(run, item, true)),
    el("b", {}, `= ${result(item)}`),
  );
}

export class HazardNote {
  constructor(state) {
    this.state = state;
    this.root = el("div", { class: "hazard-note", id: "hazard-note", hidden: true });
  }

  draw() {
    const { state } = this;
    const moment = state.hazard;
    this.root.hidden = !moment || moment.run !== state.run;
    if (this.root.hidden) return;
    const sides = moment.steps.map(({ block, thread, step, text }) =>
      button(text, step === state.step, () => state.update({ block, thread, mode: "all", step })),
    );
    replace(
      this.root,
      el("strong", {}, moment.title),
      el("p", {}, moment.text),
      moment.expected ? el("p", { class: "expected" }, moment.expected) : null,
      el(
        "div",
        { class: "bar" },
        sides,
        button("Clear", false, () => state.update({ hazard: null })),
      ),
      moment.between?.length ? this.happened(moment) : null,
      moment.fix ? el("p", { class: "fix" }, `Fix: ${moment.fix}`) : null,
      moment.diff?.length ? diff(moment.diff) : null,
    );
  }

  // What happened at the place, in order, each a way to its step.
  happened({ block, between }) {
    const { state } = this;
    const shown = between.length > MOST_EVENTS ? between.slice(-MOST_EVENTS) : between;
    const left = between.length - shown.length;
    return el(
      "details",
      { open: true },
      el("summary", {}, `All that happened there: ${plural(between.length, "access", "accesses")}`),
      left ? el("p", { class: "hint" }, `${count(left)} writes before these`) : null,
      el(
        "ol",
        { class: "events" },
        shown.map(({ step, thread, text }) =>
          el(
            "li",
            {},
            button(`step ${state.blockNow.countOf(step)}: ${text}`, step === state.step, () =>
              state.update({ block, thread, mode: "all", step }),
            ),
          ),
        ),
      ),
    );
  }
}

// A diff's lines, what is added and removed told apart.
export function diff(lines) {
  const kinds = { "+": "added", "-": "removed" };
  return el(
    "pre",
    { class: "diff", tabindex: 0, role: "group", "aria-label": "The fix as a diff" },
    lines.map((line) => el("span", { class: kinds[line[0]] ?? null }, `${line}\n`)),
  );
}

function button(text, on, onclick) {
  return el("button", { type: "button", class: on ? "on" : null, onclick }, text);
}
