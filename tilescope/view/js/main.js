// The page: a header, four parts one below the other, and the player at the foot.
import { forgetColours } from "./draw/colours.js";
import { el, replace, setText } from "./draw/dom.js";
import { help } from "./draw/help.js";
import { Access } from "./draw/access.js";
import { Compare } from "./draw/compare.js";
import { Reuse } from "./draw/reuse.js";
import { Speed } from "./draw/speed.js";
import { Stage } from "./draw/stage.js";
import { load } from "./model/data.js";
import { plural } from "./model/format.js";
import { Run } from "./model/run.js";
import { State } from "./model/state.js";
import { fedBy, pickOutput } from "./layout/pick.js";
import { opening, opensAtMoment, restore, save } from "./layout/opening.js";

class Page {
  constructor(content) {
    this.runs = content.runs.map((raw, i) => new Run(raw, content.pool, content.fields, i));
    this.state = new State(this.runs);
    this.stage = new Stage(this.state);
    this.help = help();
    const part = (id, text, made) => ({ id, text, root: made.root, draw: () => made.draw() });
    const watch = opensAtMoment(this.runs[0]) ? "The moment" : "Watch";
    this.parts = [
      part("watch", watch, this.stage),
      part("reuse", "Reuse", new Reuse(this.state)),
      part("access-part", "One warp\u2019s access", new Access(this.state)),
      part("speed", "Speed", new Speed(this.state)),
    ];
    this.compare = content.compare ? new Compare(this.state, content.compare, this.runs.filter((run) => !run.hidden)) : null;
    this.build(content);
    opening(this.state);
    this.compare?.open();
    restore(this.state);
    this.state.listeners.push(() => this.draw());
    this.listen();
    this.draw();
    this.scrolled();
    document.documentElement.dataset.ready = content.version;
  }

  build(content) {
    this.title = el("h1", {});
    this.badge = el("span", { class: "chip", id: "badge" });
    this.facts = el("span", { class: "facts", id: "facts" });
    this.links = this.parts.map((part, i) =>
      el("a", { href: `#${part.id}`, onclick: (event) => this.jump(event, i) }, el("span", {}, part.text), el("b", { "aria-hidden": "true" }, String(i + 1))));
    this.shown = this.runs.filter((run) => !run.hidden);
    this.choice = this.shown.length > 1 ? el("div", { class: "runs", role: "group", "aria-label": "Which run" }, this.shown.map((run) => el("button", { type: "button", onclick: () => this.switchTo(run) }, run.name))) : null;
    const icon = (id, text, label, onclick) => el("button", { type: "button", class: "icon", id, title: label, "aria-label": label, onclick }, text);
    replace(
      document.getElementById("app"),
      el("header", {}, el("span", { class: "brand" }, "tilescope"), this.title, this.badge, this.facts, this.choice, el("span", { class: "grow" }), el("nav", { id: "jump", "aria-label": "Parts of the page" }, this.links), icon("theme", "\u25d0", "Light or dark (d)", () => this.theme()), icon("help", "?", "Keys (?)", () => this.help.showModal())),
      el("main", {}, this.compare?.root ?? "", this.parts.map((part) => part.root)),
      this.stage.player.root,
      this.stage.player.air,
      this.help,
    );
  }

  draw() {
    const { state } = this;
    const run = state.now.hidden ? this.runs.find((one) => one.fixed === state.run) : state.now;
    setText(this.title, run.name);
    this.title.title = run.name;
    const said = facts(run);
    setText(this.facts, "");
    this.facts.append(...said.flatMap((fact) => [el("span", {}, fact), " "]));
    this.facts.title = [...said, `${run.build} build`, `schedule ${run.schedule}`].join(", ");
    const { text, bad } = badge(run);
    setText(this.badge, text);
    this.badge.className = `chip ${bad ? "bad" : "ok"}`;
    if (this.choice) [...this.choice.children].forEach((b, i) => b.setAttribute("aria-pressed", String(this.shown[i] === run)));
    this.compare?.draw();
    this.stage.draw();
    for (const part of this.parts.slice(1)) if (part.seen) part.draw();
    if (!state.playing) save(state);
  }

  // For tests: pick() picks an output element; fed() lists the elements behind it as [index, decides].
  pick(array, index) {
    pickOutput(this.state, array, index);
  }

  fed() {
    const { state } = this;
    const found = state.fed ? fedBy(state.now, state.fed.place, state.fed.index).arrays : new Map();
    return Object.fromEntries([...found].map(([place, leaves]) => [state.now.byPlace.get(place).name, [...leaves].map(([i, leaf]) => [i, leaf.decides])]));
  }

  switchTo(run) {
    this.stage.player.stop();
    this.state.update({ run: run.number });
    opening(this.state);
    this.compare?.open();
    this.draw();
  }

  listen() {
    document.addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
    let width = window.innerWidth;
    window.addEventListener("resize", () => {
      if (width !== window.innerWidth) this.draw();
      width = window.innerWidth;
    });
    window.addEventListener("scroll", () => this.scrolled(), { passive: true });
    window.addEventListener("beforeprint", () => this.beforePrint());
    window.addEventListener("afterprint", () => this.afterPrint());
    // Parts further down are drawn when they come near.
    const watcher = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const part = this.parts.find((one) => one.root === entry.target);
        if (!entry.isIntersecting || part.seen) continue;
        part.seen = true;
        part.draw();
      }
    }, { rootMargin: "400px" });
    for (const part of this.parts.slice(1)) watcher.observe(part.root);
  }

  scrolled() {
    let here = 0;
    this.parts.forEach((part, i) => {
      if (part.root.getBoundingClientRect().top < window.innerHeight * 0.35) here = i;
    });
    this.links.forEach((link, i) => {
      if (i === here) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
    const gone = this.stage.timeline.root.getBoundingClientRect().bottom < 60;
    this.stage.player.root.classList.toggle("away", gone);
  }

  jump(event, i) {
    event?.preventDefault();
    const part = this.parts[i];
    if (!part) return;
    if (i && !part.seen) {
      part.seen = true;
      part.draw();
    }
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const top = i ? part.root.getBoundingClientRect().top + window.scrollY - 58 : 0;
    window.scrollTo({ top, behavior: calm ? "auto" : "smooth" });
  }

  theme() {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    this.repaint();
  }

  // Paper is white: all parts are drawn in the light theme; afterwards the page is as before.
  beforePrint() {
    const { dataset } = document.documentElement;
    this.screen = dataset.theme;
    dataset.theme = "light";
    this.repaint();
    this.parts.forEach((part) => part.draw());
  }

  afterPrint() {
    const { dataset } = document.documentElement;
    if (this.screen) dataset.theme = this.screen;
    else delete dataset.theme;
    this.repaint();
  }

  repaint() {
    forgetColours();
    this.draw();
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || this.help.open) return;
    const { tagName } = event.target;
    if (["SELECT", "TEXTAREA", "INPUT"].includes(tagName)) return;
    const { state, stage } = this;
    const { player } = stage;
    const end = (pos) => () => {
      player.stop();
      state.update({ pos });
    };
    const turn = (list, now, back) => list[(list.indexOf(now) + (back ? -1 : 1) + list.length) % list.length];
    const threads = Array.from({ length: state.now.threads }, (_, i) => i);
    const actions = {
      " ": () => player.toggle(),
      ArrowRight: () => player.step(1, event.shiftKey),
      ArrowLeft: () => player.step(-1, event.shiftKey),
      Home: end(0),
      End: end(state.story?.count ?? 0),
      "?": () => this.help.showModal(),
      d: () => this.theme(),
      t: () => state.pick({ thread: turn(threads, state.thread, event.shiftKey) }),
      b: () => state.pick({ block: turn(state.now.recorded, state.block, event.shiftKey) }),
    };
    this.parts.forEach((_, i) => {
      actions[String(i + 1)] = () => this.jump(null, i);
    });
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action || (event.key === " " && tagName === "BUTTON")) return;
    action();
    event.preventDefault();
  }
}

// Size and launch in parts: the header shows those that fit.
function facts(run) {
  const shape = (t) => t.filter((n, i) => n > 1 || i === 0).join("\u00d7");
  const blocks = run.grid.reduce((a, b) => a * b);
  const size = run.note.replace(/(?<=[\dA-Z])x(?=[\dA-Z])/g, "\u00d7");
  return [...size.split(", "), plural(blocks, "block"), `of ${shape(run.block)} threads`].filter(Boolean);
}

function badge(run) {
  const isError = run.hazards.some((h) => h.severity === "error");
  const wrong = run.outputs.some((o) => !o.within);
  const right = run.outputs.length ? (wrong ? ", wrong result" : ", result right") : "";
  if (run.story.cause) return { text: `\u2717 ${run.story.cause}${wrong ? ", wrong result" : ""}`, bad: true };
  if (run.hazards.length) return { text: `${isError ? "\u2717 " : ""}${run.found}${right}`, bad: isError || wrong };
  const clean = run.checks.length ? run.clean : "not checked";
  return { text: `${wrong ? "\u2717" : run.checks.length ? "\u2713" : ""} ${clean}${right}`.trim(), bad: wrong };
}

load()
  .then((content) => {
    window.tilescopePage = new Page(content);
  })
  .catch((error) => {
    setText(document.getElementById("app"), `This page could not be opened: ${error.message}`);
    throw error;
  });
