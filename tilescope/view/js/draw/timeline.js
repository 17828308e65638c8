// Timeline of a block's warps (loads, computes, waits), which is also the scrubber.
import { el, replace, setText, svg } from "./dom.js";
import { HATCH, HUES, hueOf } from "../model/story.js";
import { capital, plural } from "../model/format.js";

const LONG = 300; // steps from which one phase is magnified
const MOST = 16; // warps that get a row each

export class Timeline {
  constructor(state, seek) {
    this.state = state;
    this.seek = seek;
    this.head = el("div", { class: "tl-head" });
    this.picture = svg("svg", { class: "tl-picture", role: "slider", tabindex: 0, "aria-label": "Steps of the block", "aria-valuemin": 0 });
    this.zoomButton = el("button", { type: "button", class: "plain", onclick: () => this.toggle() });
    this.root = el("section", { class: "timeline", "aria-label": "Timeline of the warps" }, this.head, this.picture);
    this.whole = false;
    this.key = "";
    this.picture.addEventListener("pointerdown", (event) => this.press(event));
    this.picture.addEventListener("keydown", (event) => this.keys(event));
  }

  toggle() {
    this.whole = !this.whole;
    this.draw();
  }

  keys(event) {
    const step = { ArrowUp: 1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
    if (!step) return;
    this.seek(this.state.pos + step);
    event.preventDefault();
  }

  draw(marks = []) {
    const { state, root } = this;
    const { story } = state;
    if (!story) return;
    if (this.opened !== state.run) {
      this.opened = state.run;
      this.whole = state.now.story.layout === "rows";
    }
    this.marks = marks;
    const room = root.clientWidth || 800;
    const long = story.count > LONG && story.phases.length > 1;
    const zoom = long && !this.whole;
    const phase = story.phases[story.phaseAt(state.pos)] ?? { from: 0, to: story.count };
    const [from, to] = zoom ? [phase.from, phase.to] : [0, story.count];
    const key = [state.run, state.block, room, from, to, long, state.warp, marks.map((m) => m.step).join()].join();
    if (key !== this.key) {
      this.key = key;
      this.build(room, long, zoom, from, to);
    }
    this.playhead();
  }

  build(room, long, zoom, from, to) {
    const { state } = this;
    const { story, now: run } = state;
    const label = room < 500 ? 30 : 68;
    const wide = room - label - 6;
    this.span = { from, to, label, wide };
    const X = (step) => label + ((Math.max(from, Math.min(to, step)) - from) / Math.max(1, to - from)) * wide;
    this.X = X;
    const warps = rowsOf(run.warps, state.warp);
    const one = run.warps === 1;
    const [high, gap] = one ? [24, 0] : [warps.length > 8 ? 9 : 12, 3];
    const phases = story.phases.length > 1 && story.phaseCount > 1;
    const top = long ? 38 : phases ? 24 : 14;
    const height = top + warps.length * (high + gap) + 8;
    this.top = top;
    this.height = height;
    const parts = [pattern()];
    if (long) parts.push(...this.overview(label, wide, zoom, top));
    else if (phases) parts.push(...brackets(story, X));
    warps.forEach((warp, row) => {
      const y = top + row * (high + gap);
      const here = warp === state.warp;
      const name = room < 500 ? `w${warp}` : one ? (run.threads < 32 ? plural(run.threads, "thread") : "warp 0") : `warp ${warp}`;
      parts.push(svg("text", { x: label - 8, y: y + high / 2 + 4, class: here ? "name here" : "name", "text-anchor": "end" }, name));
      parts.push(svg("rect", { x: label, y: y + high / 2 - 0.5, width: wide, height: 1, class: "could" }));
      parts.push(...this.row(story.segments[warp], X, y, high, from, to, wide));
    });
    for (const step of story.releases)
      if (step + 1 >= from && step + 1 <= to)
        parts.push(svg("rect", { x: X(step + 1) - 1, y: top - 3, width: 2, height: height - top - 2, class: "opens" }));
    for (const mark of this.marks ?? []) {
      const row = warps.indexOf(mark.warp);
      if (row < 0 || mark.step < from || mark.step > to) continue;
      const y = top + row * (high + gap) + high / 2;
      parts.push(svg("circle", { cx: X(mark.step + 0.5), cy: y, r: 8, class: "mark" }), svg("text", { x: X(mark.step + 0.5), y: y + 4, class: "mark-text", "text-anchor": "middle" }, mark.text));
    }
    this.needle = svg("g", { class: "needle" }, svg("path", { d: `M0 ${top - 6}V${height - 2}`, class: "stem" }), svg("path", { d: `M-6 ${top - 14}h12v6l-6 6l-6-6z` }));
    this.picture.setAttribute("viewBox", `0 0 ${room} ${height}`);
    this.picture.setAttribute("width", room);
    this.picture.setAttribute("height", height);
    replace(this.picture, parts, this.needle);
    this.drawHead(long, zoom);
  }

  // One path for all segments of a hue: a long run has thousands.
  row(segments, X, y, high, from, to, wide) {
    const paths = new Map();
    const sharp = wide / Math.max(1, to - from) > 6 ? 1 : 0;
    for (const s of segments) {
      if (s.to <= from || s.from >= to) continue;
      const x = X(s.from);
      const w = Math.max(0.8, X(s.to) - x - (s.hue === HATCH ? 0 : sharp));
      paths.set(s.hue, `${paths.get(s.hue) ?? ""}M${x.toFixed(1)} ${y}h${w.toFixed(1)}v${high}h${(-w).toFixed(1)}z`);
    }
    return [...paths].map(([hue, d]) => svg("path", { d, class: hue === HATCH ? "waits" : null, style: hue === HATCH ? "fill: url(#tl-hatch)" : `fill: var(--${HUES[hue]}1)` }));
  }

  overview(label, wide, zoom, top) {
    const { state } = this;
    const { story } = state;
    const here = story.phaseAt(state.pos);
    return story.phases.flatMap((phase, i) => {
      const x = label + (phase.from / story.count) * wide;
      const w = ((phase.to - phase.from) / story.count) * wide;
      const text = nameWithin(phase, w, 70);
      const on = i === here;
      const parts = [svg("rect", { x: x + 1, y: 2, width: Math.max(1, w - 2), height: 17, rx: 3, class: on ? "phase here" : "phase", "data-seek": phase.from + 1 })];
      if (text) parts.push(svg("text", { x: x + w / 2, y: 14.5, class: on ? "phase-name here" : "phase-name", "text-anchor": "middle" }, text));
      if (on && zoom) parts.unshift(svg("path", { d: `M${x + 1} 19L${label} ${top - 5}H${label + wide}L${x + w - 1} 19z`, class: "magnified" }));
      if (on && zoom && label > 60) parts.push(svg("text", { x: label - 8, y: 14.5, class: "name", "text-anchor": "end" }, "magnified:"));
      return parts;
    });
  }

  drawHead(long, zoom) {
    const { state } = this;
    const { story, now: run } = state;
    const inputs = run.arrays.filter((array) => array.reads_total && !array.writes_total && story.windows.some((w) => w[1] === array.place && !w[2]));
    this.zoomButton.textContent = zoom ? "show the whole run" : "show one phase";
    const key = (fill, text) => el("span", { class: "key" }, svg("svg", { width: 16, height: 12, "aria-hidden": "true" }, svg("rect", { width: 16, height: 12, style: `fill: ${fill}` })), text);
    const unrecorded = run.blocks > run.recorded.length ? el("span", { class: "mute", title: run.recordingOf(missing(run)) }, `${run.recorded.length} of ${plural(run.blocks, "block")} recorded`) : null;
    replace(
      this.head,
      el("b", { title: `Schedule ${run.schedule}` }, `${capital(run.blockName(state.block))}, ${plural(story.count, state.isCut ? "recorded step" : "step")}`),
      inputs.slice(0, 4).map((array) => key(`var(--${hueOf(run, array)}1)`, `loads ${array.name}`)),
      key("var(--c1)", "computes"),
      story.releases.length ? [key("url(#tl-hatch)", "waits"), el("span", { class: "key" }, svg("svg", { width: 8, height: 12, "aria-hidden": "true" }, svg("rect", { x: 3, width: 2, height: 12, style: "fill: var(--ink)" })), "barrier opens")] : null,
      (this.flow = el("span", { class: "mute", id: "phase-flow" })),
      unrecorded,
      long ? this.zoomButton : null,
    );
  }

  playhead() {
    const { state, span } = this;
    const out = state.pos < span.from || state.pos > span.to;
    this.needle.setAttribute("transform", `translate(${this.X(state.pos).toFixed(1)},0)`);
    this.needle.setAttribute("opacity", out ? 0 : 1);
    setText(this.flow, phaseFlow(state));
    this.picture.setAttribute("aria-valuemax", state.story.count);
    this.picture.setAttribute("aria-valuenow", state.pos);
    this.picture.setAttribute("aria-valuetext", `step ${state.pos} of ${state.story.count}`);
  }

  stepAt(event) {
    const box = this.picture.getBoundingClientRect();
    const { from, to, label, wide } = this.span;
    const share = (event.clientX - box.x - label) / wide;
    return Math.max(from, Math.min(to, Math.round(from + share * (to - from))));
  }

  press(event) {
    const { seek } = event.target.dataset;
    if (seek) return this.seek(Number(seek));
    this.seek(this.stepAt(event));
    const move = (e) => this.seek(this.stepAt(e));
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", () => window.removeEventListener("pointermove", move), { once: true });
  }
}

// Loads, different values and sectors of the phase at hand, as Python counted them.
function phaseFlow({ story, pos, now }) {
  const phase = story.phases[story.phaseAt(pos)];
  if (!phase) return "";
  const loads = story.loads[phase.to] - story.loads[phase.from];
  if (!loads) return "";
  const name = story.phaseCount > 1 && phase.number ? `${phase.name}: ` : "";
  const sectors = phase.sectors ? `, ${plural(phase.sectors, "sector")} moved` : "";
  return `${name}${plural(loads, now.story.copies ? "value" : "load")} of ${plural(phase.distinct, "different value")}${sectors}`;
}

// A block whose steps are not on the page.
function missing(run) {
  const recorded = new Set(run.recorded);
  let block = 0;
  while (recorded.has(block)) block++;
  return block;
}

// All warps, or MOST of them around the picked one.
function rowsOf(count, warp) {
  if (count <= MOST) return Array.from({ length: count }, (_, i) => i);
  const first = Math.max(0, Math.min(count - MOST, warp - MOST / 2));
  return Array.from({ length: MOST }, (_, i) => first + i);
}

function brackets(story, X) {
  return story.phases.flatMap((phase) => {
    const [x, end] = [X(phase.from), X(phase.to)];
    if (end - x < 8) return [];
    const text = nameWithin(phase, end - x, 60);
    return [
      svg("path", { d: `M${x + 1} 14v-4H${end - 1}v4`, class: "bracket" }),
      svg("text", { x: (x + end) / 2, y: 9, class: "phase-name", "text-anchor": "middle" }, text),
    ];
  });
}

// A phase's name where there is room for a numbered one, else its last word: the number, or "write".
function nameWithin(phase, width, room) {
  const last = phase.name.split(" ").at(-1);
  if (width > room) return phase.name;
  return width > (Number.isNaN(Number(last)) ? 40 : 16) ? last : "";
}

function pattern() {
  return svg("defs", {}, svg("pattern", { id: "tl-hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("rect", { width: 2.2, height: 6, style: "fill: var(--hatch)" })));
}
