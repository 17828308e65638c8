// The bar that moves through time: a slider, play, steps and phases.
import { el, replace, setText, svg } from "./dom.js";
import { count } from "./format.js";
import { caption } from "./words.js";

const SPEEDS = [
  ["900", "slow"],
  ["350", "normal"],
  ["90", "fast"],
];
const MODES = [
  ["thread", "what the picked thread does"],
  ["warp", "what its warp does"],
  ["all", "every step of the block"],
];

const ICONS = {
  play: "M4 2l10 6-10 6z",
  pause: "M4 2h3v12H4zM9 2h3v12H9z",
  back: "M11 2v12L4 8z",
  on: "M5 2v12l7-6z",
  firstward: "M2 2h2v12H2zM14 2v12L5 8z",
  lastward: "M12 2h2v12h-2zM2 2v12l9-6z",
};

function icon(name) {
  return svg(
    "svg",
    { viewBox: "0 0 16 16", "aria-hidden": "true" },
    svg("path", { d: ICONS[name] }),
  );
}

export class Transport {
  constructor(state) {
    this.state = state;
    const button = (shape, label, action) =>
      el(
        "button",
        { type: "button", "aria-label": label, title: label, onclick: action },
        icon(shape),
      );
    this.play = button("play", "Play (space)", () => this.toggle());
    this.slider = el("input", {
      type: "range",
      min: 0,
      id: "slider",
      "aria-label": "Step",
      oninput: () => state.go(Number(this.slider.value)),
    });
    this.text = el("span", { class: "at", id: "at" });
    this.mode = el(
      "select",
      { id: "mode", onchange: () => state.update({ mode: this.mode.value }) },
      MODES.map(([value, text]) => el("option", { value }, text)),
    );
    this.speed = el(
      "select",
      { id: "speed", "aria-label": "Speed of play" },
      SPEEDS.map(([value, text]) => el("option", { value, selected: text === "normal" }, text)),
    );
    this.ticks = el("div", { class: "ticks", "aria-hidden": "true" });
    this.root = el(
      "section",
      { class: "transport", "aria-label": "Time" },
      el(
        "div",
        { class: "buttons" },
        button("firstward", "Previous phase (shift and left)", () => state.goPhase(-1)),
        button("back", "Previous step (left)", () => state.go(state.stop - 1)),
        this.play,
        button("on", "Next step (right)", () => state.go(state.stop + 1)),
        button("lastward", "Next phase (shift and right)", () => state.goPhase(1)),
      ),
      el("div", { class: "track" }, this.slider, this.ticks),
      this.text,
      el(
        "div",
        { class: "choices" },
        el("label", { for: "mode" }, "Steps: "),
        this.mode,
        this.speed,
      ),
    );
  }

  toggle() {
    if (this.state.playing) this.stop();
    else {
      if (this.state.stop >= this.state.stops.length - 1) this.state.go(0);
      this.state.update({ playing: true });
      this.tick();
    }
  }

  tick() {
    if (!this.state.playing) return;
    if (this.state.stop >= this.state.stops.length - 1) {
      this.stop();
      return;
    }
    this.timer = setTimeout(() => {
      this.state.go(this.state.stop + 1);
      this.tick();
    }, Number(this.speed.value));
  }

  stop() {
    clearTimeout(this.timer);
    this.state.update({ playing: false });
  }

  draw() {
    const { state } = this;
    const stops = state.stops;
    const block = state.blockNow;
    const phase = block.phases[state.step];
    this.slider.max = stops.length - 1;
    this.slider.value = state.stop;
    const phases = block.phaseCount > 1 ? `phase ${phase + 1} of ${block.phaseCount}, ` : "";
    const text = `${phases}step ${count(state.stop + 1)} of ${count(stops.length)}`;
    setText(this.text, text);
    this.slider.setAttribute("aria-valuetext", `${text}: ${caption(block, phase)}`);
    this.mode.value = state.mode;
    if (this.shown !== state.playing) replace(this.play, icon(state.playing ? "pause" : "play"));
    this.shown = state.playing;
    this.play.setAttribute("aria-pressed", String(state.playing));
    this.drawTicks(block, stops);
  }

  // A mark on the track where each phase begins.
  drawTicks(block, stops) {
    if (this.tickStops === stops) return;
    this.tickStops = stops;
    const marks = [];
    for (let i = 1; i < stops.length; i++) {
      if (block.phases[stops[i]] !== block.phases[stops[i - 1]]) {
        const mark = el("i", {});
        mark.style.left = `${(100 * i) / Math.max(1, stops.length - 1)}%`;
        marks.push(mark);
      }
    }
    this.ticks.replaceChildren(...marks.slice(0, 400));
  }
}
