// The player at the foot of the page, and its narrator.
import { el, setText } from "./dom.js";
import { sentence } from "./words.js";
import { MAKE, WAIT } from "../model/story.js";

const SPEEDS = [["slow", 1200], ["normal", 650], ["fast", 220]];
const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export class Player {
  // flights(): values that fly after a step; see the layouts.
  constructor(state, stage) {
    this.state = state;
    this.stage = stage;
    this.prev = el("button", { type: "button", "aria-label": "A beat back (left arrow)", title: "\u2190", onclick: () => this.step(-1) }, "\u2039");
    this.play = el("button", { type: "button", class: "play", id: "play", onclick: () => this.toggle() }, "\u25b6 Play");
    this.next = el("button", { type: "button", "aria-label": "A beat on (right arrow)", title: "\u2192", onclick: () => this.step(1) }, "\u203a");
    this.say = el("p", { class: "say", id: "say", "aria-live": "polite" });
    this.count = el("span", { class: "count", id: "count" });
    this.speed = el("select", { "aria-label": "Speed" }, SPEEDS.map(([text, ms]) => el("option", { value: ms, selected: ms === 650 }, text)));
    this.root = el("footer", { class: "player", "aria-label": "Player" }, this.prev, this.play, this.next, this.say, this.count, this.speed);
    this.air = el("div", { class: "air", "aria-hidden": "true" });
    this.timer = 0;
  }

  get ms() {
    return Number(this.speed.value);
  }

  narrate(parts, count) {
    this.said = parts;
    sentence(this.say, parts);
    setText(this.count, count);
  }

  // The sentence about the element under the pointer or cursor.
  aside(parts) {
    sentence(this.say, parts ?? this.said ?? []);
  }

  toggle() {
    if (this.stage.flip?.()) return;
    if (this.timer) return this.stop();
    const { state } = this;
    if (state.pos >= (state.story?.count ?? 0)) this.again();
    state.playing = true;
    this.say.setAttribute("aria-live", "off");
    setText(this.play, "\u275a\u275a Pause");
    this.timer = 1;
    this.tick();
  }

  // From the start: of the next block, if there are few.
  again() {
    const { state } = this;
    const { recorded } = state.now;
    const next = recorded[(recorded.indexOf(state.block) + 1) % recorded.length];
    state.update({ block: this.nextBlock ? next : state.block, pos: 0 });
  }

  get nextBlock() {
    const run = this.state.now;
    return run.recorded.length > 1 && run.recorded.length === run.blocks && run.blocks <= 16;
  }

  stop() {
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
    this.timer = 0;
    this.state.playing = false;
    this.say.setAttribute("aria-live", "polite");
    this.label();
  }

  label() {
    if (this.timer) return;
    const { state } = this;
    const over = state.pos >= (state.story?.count ?? 0);
    setText(this.play, this.stage.label?.() ?? (over && this.nextBlock ? "\u25b6 Next block" : over ? "\u25b6 Again" : "\u25b6 Play"));
  }

  step(direction, phase = false) {
    if (this.stage.turn?.(direction)) return;
    if (this.timer > 1 || this.timer === 0) this.stop();
    const { state } = this;
    if (phase) state.goPhase(direction);
    else state.goBeat(state.beat + direction);
    if (direction > 0 && !phase) this.fly();
  }

  // Values fly; a target keeps its old value until its new one arrives.
  fly() {
    const { state } = this;
    if (calm()) return;
    const flights = this.stage.flights();
    if (!flights.length) return;
    const duration = Math.min(480, this.ms * 0.7);
    if (state.current?.kind === 0) {
      state.holding = true;
      this.stage.draw();
      setTimeout(() => {
        state.holding = false;
        this.stage.draw();
      }, duration);
    }
    for (const f of flights) this.chip(f, duration);
  }

  chip({ from, to, size, end, text, hue }, duration) {
    const chip = el("i", { class: "chip-fly", style: `width: ${end}px; height: ${end}px; background: var(--${hue}1); border-color: var(--${hue}2); font-size: ${end * 0.34}px` }, text ?? "");
    this.air.append(chip);
    chip
      .animate(
        [{ transform: `translate(${from[0]}px, ${from[1]}px) scale(${size / end})` }, { transform: `translate(${to[0]}px, ${to[1]}px)` }],
        { duration, easing: "cubic-bezier(.5,0,.2,1)" },
      )
      .finished.then(() => chip.remove(), () => chip.remove());
  }

  tick() {
    const { state } = this;
    const beat = state.beats[state.beat];
    if (!beat) {
      state.goBeat(state.beats.length);
      return this.stop();
    }
    if (beat.kind === WAIT && beat.to - state.pos > 6 && !calm()) return this.sweep(beat);
    state.goBeat(state.beat + 1);
    this.fly();
    const short = beat.kind === MAKE && state.beats.length > 16;
    this.timer = setTimeout(() => this.tick(), short ? this.ms * 0.35 : this.ms);
    return undefined;
  }

  // At a barrier the other warps arrive, one after the other.
  sweep(beat) {
    const { state } = this;
    const from = state.pos;
    const begun = performance.now();
    const go = (now) => {
      if (!this.timer) return;
      const share = Math.min(1, (now - begun) / (this.ms * 2.2));
      state.update({ pos: Math.round(from + (beat.to - from) * share) });
      if (share < 1) this.frame = requestAnimationFrame(go);
      else this.timer = setTimeout(() => this.tick(), this.ms * 0.6);
    };
    this.frame = requestAnimationFrame(go);
  }
}
