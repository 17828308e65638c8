// Beside the steps: how the picked thread's value grew, and the hazard at hand.
import { el, replace, setText } from "./dom.js";
import { expression, nameOf, result } from "./thread.js";

const MOST = 64;

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
      { class: "panel", "aria-labelledby": "growth-title" },
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
    this.list.hidden = !thread.items.some((item) => item.depth);
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
      el(
        "div",
        { class: "bar" },
        sides,
        button("Clear", false, () => state.update({ hazard: null })),
      ),
      moment.cure ? el("p", { class: "cure" }, `Cure: ${moment.cure}`) : null,
    );
  }
}

function button(text, on, onclick) {
  return el("button", { type: "button", class: on ? "on" : null, onclick }, text);
}
