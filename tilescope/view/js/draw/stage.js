// The first part of the page: the sentence, the stage of lenses, code, thread, and the timeline.
import { el, replace } from "./dom.js";
import { Code } from "./code.js";
import { Findings } from "./findings.js";
import { Flow } from "./flow.js";
import { inCell } from "./numbers.js";
import { Player } from "./player.js";
import { ThreadPanel } from "./threadpanel.js";
import { Timeline } from "./timeline.js";
import { plainText, sentence } from "./words.js";
import { openMoment } from "../layout/opening.js";
import { layoutFor, pictureOf } from "../layout/choose.js";
import { beatSentence, lineValues } from "../layout/narrator.js";
import { coloured } from "../moment/moment.js";
import { sayFed } from "../layout/pick.js";

export class Stage {
  constructor(state) {
    this.state = state;
    this.title = el("h2", { id: "finding" });
    this.more = el("p", { id: "more" });
    this.flow = new Flow(state);
    this.thread = new ThreadPanel(state);
    this.code = new Code(state);
    this.player = new Player(state, this);
    this.timeline = new Timeline(state, (pos) => {
      this.player.stop();
      state.update({ pos, moment: -1, fixed: false });
    });
    this.place = el("div", { class: "stage-lens" });
    this.findings = new Findings(state, (number) => this.goMoment(number));
    this.body = el("div", { class: "stage" }, this.flow.root, this.place, this.thread.root, this.code.root);
    this.root = el("section", { id: "watch", "aria-labelledby": "finding" }, el("div", { class: "find" }, this.title, this.more), this.body, this.timeline.root, this.findings.root);
  }

  // The layout of the run at hand.
  get layout() {
    const { state } = this;
    const key = pictureOf(state) || state.run;
    this.layouts ??= new Map();
    if (!this.layouts.has(key)) this.layouts.set(key, layoutFor(state, this));
    return this.layouts.get(key);
  }

  draw() {
    const { state } = this;
    const { story } = state.now;
    this.words(story);
    const { layout } = this;
    if (this.shown !== layout) {
      replace(this.place, layout.root);
      this.panel?.remove();
      this.panel = layout.panel ?? null;
      if (this.panel) this.place.after(this.panel);
      this.listen(layout);
      this.shown = layout;
    }
    this.body.className = `stage ${layout.panel ? "moment" : layout.own ? "strip" : ""}`;
    this.thread.root.hidden = Boolean(layout.own || layout.panel);
    this.flow.root.hidden = this.thread.root.hidden;
    const room = this.room(layout);
    layout.draw(room);
    if (!layout.own && !layout.panel) {
      this.flow.draw(null);
      this.thread.draw();
    }
    const { value, hue, w } = lineValues(state);
    this.code.draw(w, layout.line?.() ?? value, hue, layout.codeMarks?.() ?? this.hazardLines());
    this.timeline.draw(layout.marks?.() ?? []);
    if (!state.playing || state.current) this.player.narrate(layout.sentence?.() ?? (state.fed ? sayFed(state) : beatSentence(state)), layout.count?.() ?? `${state.beat} of ${state.beats.length}${state.isCut ? " recorded" : ""}`);
    this.player.label();
    this.findings.draw();
  }

  goMoment(number) {
    this.player.stop();
    openMoment(this.state, number);
    window.scrollTo({ top: 0 });
  }

  // Lines of the first error.
  hazardLines() {
    const hazard = this.state.now.hazards.find((one) => one.severity === "error");
    const found = new Map();
    (hazard?.involved ?? []).slice(0, 3).forEach((item, i) => {
      if (item.line && !found.has(item.line)) found.set(item.line, { cls: i ? "second" : "first", tag: `${"\u2460\u2461\u2462"[i]} ${item.role}` });
    });
    return found;
  }

  words(story) {
    const over = this.layout.title?.();
    sentence(this.title, over?.title ?? coloured(story.title));
    sentence(this.more, over?.more ?? coloured(story.more));
    this.more.hidden = !plainText(over?.more ?? story.more).length;
  }

  // Pixels for the lens beside thread and code.
  room(layout) {
    const all = Math.max(280, this.root.clientWidth);
    const small = "small" in document.documentElement.dataset && window.innerWidth >= 900; // as in 9-small.css
    if (small) return Math.max(562, (all - 20) * 0.6);
    if (window.innerWidth <= 1200) return all; // 8-narrow.css has the same width
    if (layout.panel) return Math.max(420, all - 300 - 400 - 64);
    return layout.own ? all - 30 - Math.min(400, Math.max(320, all * 0.3)) : Math.max(560, Math.min(760, all - 214 - 320 - 60));
  }

  flights() {
    const { layout } = this;
    if (!layout.flights) return [];
    const { lens } = layout;
    return layout.flights().map((f) => ({
      from: lens.place(f.x, f.y), to: lens.place(f.u, f.v), size: f.size * lens.scale, end: f.end * lens.scale,
      text: typeof f.text === "number" ? inCell(f.text) : f.text, hue: f.hue,
    }));
  }

  flip() {
    return this.layout.flip?.();
  }

  turn(direction) {
    return this.layout.turn?.(direction);
  }

  label() {
    return this.layout.label?.();
  }

  // Pointers and keys on the lens: hovering tells, a click picks, arrows move over the cells.
  listen(layout) {
    const { lens } = layout;
    if (!lens || lens.listens) return;
    lens.listens = true;
    const { canvas, root } = lens;
    root.addEventListener("pointermove", (event) => {
      if (this.state.playing) return;
      const found = lens.under(event);
      this.player.aside(found?.spot.say?.(found.x, found.y) ?? null);
      root.style.cursor = found?.spot.pick ? "pointer" : "";
    });
    root.addEventListener("pointerleave", () => this.player.aside(null));
    root.addEventListener("click", (event) => {
      const found = lens.under(event);
      if (found?.spot.pick) {
        this.player.stop();
        found.spot.pick(found.x, found.y);
      }
    });
    canvas.tabIndex = -1;
    root.tabIndex = 0;
    root.setAttribute("role", "application");
    root.setAttribute("aria-label", "Arrays: arrow keys move over cells, tab to the next array, enter picks, escape leaves");
    root.addEventListener("keydown", (event) => this.rove(lens, event));
    root.addEventListener("focus", () => this.rove(lens, null));
    root.addEventListener("blur", () => {
      lens.cursor?.remove();
      this.roving = null;
      this.player.aside(null);
    });
  }

  rove(lens, event) {
    const grids = lens.spots.filter((spot) => spot.grid);
    if (!grids.length) return;
    this.roving ??= { which: grids.length - 1, row: 0, column: 0 };
    const at = this.roving;
    const spot = grids[Math.min(at.which, grids.length - 1)];
    const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
    const center = () => [(at.column + 0.5) * spot.grid.cell, (at.row + 0.5) * (spot.grid.tall ?? spot.grid.cell)];
    if (event) {
      if (event.key === "Escape") {
        lens.root.blur();
        return;
      }
      if (event.key === "Enter" && spot.pick) spot.pick(...center());
      else if (event.key === "PageDown" || event.key === "PageUp") {
        at.which = (at.which + (event.key === "PageDown" ? 1 : -1) + grids.length) % grids.length;
        [at.row, at.column] = [0, 0];
        event.preventDefault();
        event.stopPropagation();
        return void this.rove(lens, null);
      } else if (moves[event.key] && !event.shiftKey) {
        at.row = Math.max(0, Math.min(spot.grid.rows - 1, at.row + moves[event.key][0]));
        at.column = Math.max(0, Math.min(spot.grid.cols - 1, at.column + moves[event.key][1]));
      } else return;
      event.preventDefault();
      event.stopPropagation();
    }
    lens.cursor ??= el("div", { class: "cursor" });
    const size = spot.grid.cell * lens.scale;
    const tall = (spot.grid.tall ?? spot.grid.cell) * lens.scale;
    lens.cursor.style.cssText = `left: ${(spot.x + at.column * spot.grid.cell) * lens.scale - 2}px; top: ${(spot.y + at.row * (spot.grid.tall ?? spot.grid.cell)) * lens.scale - 2}px; width: ${size + 4}px; height: ${tall + 4}px`;
    lens.focus.append(lens.cursor);
    this.player.aside(spot.say?.(...center()) ?? null);
  }
}
