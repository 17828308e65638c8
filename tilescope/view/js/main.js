// The page: header, four views, and the bar of time.
import { beside } from "./align.js";
import { Barriers } from "./barriers.js";
import { load } from "./data.js";
import { el, replace, setText } from "./dom.js";
import { count, plural, shape } from "./format.js";
import { prepareShades } from "./heat.js";
import { help } from "./help.js";
import { Matrices } from "./matrices.js";
import { Memory } from "./memory.js";
import { forgetColours } from "./paint.js";
import { Run } from "./run.js";
import { State } from "./state.js";
import { Steps } from "./steps.js";
import { Transport } from "./transport.js";

const VIEWS = [
  ["matrices", "Arrays", Matrices],
  ["steps", "Steps", Steps],
  ["barriers", "Barriers", Barriers],
  ["memory", "Memory", Memory],
];

class Page {
  constructor(content) {
    this.runs = content.runs.map((raw, i) => new Run(raw, content.pool, content.fields, i));
    prepareShades(this.runs);
    this.state = new State(this.runs);
    this.views = Object.fromEntries(VIEWS.map(([name, , View]) => [name, new View(this.state)]));
    this.transport = new Transport(this.state);
    this.help = help();
    this.build(content);
    this.state.listeners.push(() => this.draw());
    document.addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
    let width = window.innerWidth;
    window.addEventListener("resize", () => {
      if (width !== window.innerWidth) this.draw();
      width = window.innerWidth;
    });
    this.draw();
  }

  build(content) {
    this.tabs = VIEWS.map(([name, text], i) =>
      el(
        "button",
        {
          type: "button",
          role: "tab",
          id: `tab-${name}`,
          "aria-controls": `view-${name}`,
          onclick: () => this.state.update({ view: name }),
        },
        text,
        el("kbd", { "aria-hidden": "true" }, String(i + 1)),
      ),
    );
    this.panels = VIEWS.map(([name]) =>
      el(
        "div",
        { role: "tabpanel", id: `view-${name}`, "aria-labelledby": `tab-${name}` },
        this.views[name].root,
      ),
    );
    this.facts = el("p", { class: "facts", id: "facts" });
    this.title = el("h1", {});
    this.badge = el("button", {
      type: "button",
      class: "badge",
      id: "badge",
      onclick: () => this.state.update({ view: "barriers" }),
    });
    this.choice =
      this.runs.length > 1
        ? el(
            "div",
            { class: "runs", role: "group", "aria-label": "Which run" },
            this.runs.map((run) =>
              el(
                "button",
                {
                  type: "button",
                  onclick: () => this.switchTo(run),
                },
                run.name,
              ),
            ),
          )
        : null;
    const tablist = el(
      "div",
      { role: "tablist", "aria-label": "Views", onkeydown: (event) => this.tabKey(event) },
      this.tabs,
    );
    replace(
      document.getElementById("app"),
      el(
        "header",
        {},
        el(
          "div",
          { class: "top" },
          el("span", { class: "brand" }, "tilescope"),
          this.title,
          this.badge,
          el("span", { class: "space" }),
          el(
            "button",
            {
              type: "button",
              id: "theme",
              "aria-label": "Light or dark (t)",
              title: "Light or dark (t)",
              onclick: () => this.theme(),
            },
            "\u25d0",
          ),
          el(
            "button",
            {
              type: "button",
              id: "help-button",
              "aria-label": "Help (?)",
              title: "Help (?)",
              onclick: () => this.help.showModal(),
            },
            "?",
          ),
        ),
        this.facts,
        el("div", { class: "bar" }, tablist, this.choice),
      ),
      el("main", {}, this.panels),
      this.transport.root,
      this.help,
    );
    document.documentElement.dataset.ready = content.version;
  }

  draw() {
    const { state } = this;
    const run = state.now;
    setText(this.title, run.name);
    setText(this.facts, facts(run));
    const errors = run.hazards.filter((h) => h.severity === "error").length;
    const wrong = run.outputs.filter((o) => !o.within).length;
    this.badge.className = `badge ${errors || wrong ? "error" : run.hazards.length ? "warning" : "clean"}`;
    setText(this.badge, badge(run, wrong));
    VIEWS.forEach(([name], i) => {
      const on = state.view === name;
      this.tabs[i].setAttribute("aria-selected", String(on));
      this.tabs[i].tabIndex = on ? 0 : -1;
      this.panels[i].hidden = !on;
    });
    // Browsers take their time to move the focus out of what is hidden; keys must not go there.
    const focused = document.activeElement;
    if (this.panels.some((panel) => panel.hidden && panel.contains(focused))) focused.blur();
    if (this.choice)
      [...this.choice.children].forEach((b, i) =>
        b.setAttribute("aria-pressed", String(i === state.run)),
      );
    this.views[state.view].draw();
    this.transport.root.hidden = state.view === "matrices";
    if (state.view !== "matrices") this.transport.draw();
  }

  // Another run, at the step that stands beside the one at hand.
  switchTo(run) {
    const { state } = this;
    const at = beside(state.now, run, state.block, state.thread, state.step);
    state.update({ run: run.number, thread: at?.thread ?? 0, step: at?.step ?? 0 });
  }

  theme() {
    const root = document.documentElement;
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    this.repaint();
  }

  repaint() {
    forgetColours();
    this.draw();
  }

  tabKey(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const names = VIEWS.map(([name]) => name);
    const next = (names.indexOf(this.state.view) + step + names.length) % names.length;
    this.state.update({ view: names[next] });
    this.tabs[next].focus();
    event.preventDefault();
    event.stopPropagation();
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || this.help.open) return;
    const tag = event.target.tagName;
    if (tag === "SELECT" || tag === "TEXTAREA") return;
    const { state } = this;
    const timed = state.view !== "matrices";
    const actions = {
      ArrowRight: () => timed && (event.shiftKey ? state.goPhase(1) : state.go(state.stop + 1)),
      ArrowLeft: () => timed && (event.shiftKey ? state.goPhase(-1) : state.go(state.stop - 1)),
      Home: () => timed && state.go(0),
      End: () => timed && state.go(state.stops.length - 1),
      " ": () => timed && tag !== "BUTTON" && this.transport.toggle(),
      "?": () => this.help.showModal(),
      t: () => this.theme(),
    };
    VIEWS.forEach(([name], i) => {
      actions[String(i + 1)] = () => state.update({ view: name });
    });
    if (!actions[event.key] || (event.key === " " && (tag === "BUTTON" || !timed))) return;
    actions[event.key]();
    if (timed || !event.key.startsWith("Arrow")) event.preventDefault();
  }
}

const SCHEDULES = {
  lockstep: ": all warps in step",
  warps: ": one warp runs until it has to wait",
  reverse: ": one warp at a time, the last first",
};

function facts(run) {
  const parts = [
    run.note,
    `grid ${shape(run.grid)}`,
    `block ${shape(run.block)}`,
    `${run.build} build`,
    `schedule ${run.schedule}${SCHEDULES[run.schedule] ?? ""}`,
  ];
  const loads = run.counters.global_load;
  if (loads?.accesses)
    parts.push(`${count(loads.accesses)} global loads in ${plural(loads.sectors, "sector")}`);
  return parts.filter(Boolean).join(" \u00b7 ");
}

function badge(run, wrong) {
  const parts = [];
  if (run.hazards.length) parts.push(`\u26a0 ${plural(run.hazards.length, "hazard")}`);
  else parts.push(`${run.checks.length ? "\u2713 " : ""}${run.clean}`);
  if (run.outputs.length) parts.push(wrong ? "\u2717 wrong result" : "\u2713 result right");
  return parts.join(" \u00b7 ");
}

load()
  .then((content) => {
    window.tilescopePage = new Page(content);
  })
  .catch((error) => {
    setText(document.getElementById("app"), `This page could not be opened: ${error.message}`);
    throw error;
  });
