// One warp's access: its threads, and the sectors or banks that serve them.
import { el, replace, svg } from "./dom.js";
import { Lines } from "./lines.js";
import { SHARED } from "../model/run.js";
import { hueAt } from "../model/story.js";
import { banks, lanesOf, sectors } from "../model/warp.js";
import { worstOf } from "../model/worst.js";
import { count, plural } from "../model/format.js";

export class Access {
  constructor(state) {
    this.state = state;
    this.list = el("div", { class: "accesses", role: "group", "aria-label": "Accesses of the kernel" });
    this.code = el("code", { class: "access-code" });
    this.picture = el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "The warp's access" });
    this.text = el("p", { class: "arithmetic", id: "access" });
    this.lines = new Lines((number) => this.pick(number));
    this.counters = el("details", {}, el("summary", {}, "Counters of every source line"), el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Counters" }, this.lines.table));
    this.root = el(
      "section",
      { class: "part", id: "access-part", "aria-labelledby": "access-title" },
      el("h2", { id: "access-title" }, "One warp\u2019s access"),
      el("p", {}, "Global memory moves in sectors of 32 bytes; shared memory answers from 32 banks at a time. Few sectors and one pass are good."),
      el("div", { class: "access-grid" }, this.list, el("div", {}, this.code, this.picture, this.text)),
      this.counters,
    );
    this.key = "";
  }

  draw() {
    const { state } = this;
    const key = `${state.run}:${state.block}:${this.root.clientWidth}`;
    if (key === this.key) return;
    this.key = key;
    this.found = this.collect();
    const run = state.now;
    const first = new Map(this.found.map((one) => [one.w.number, one.event]));
    const worst = worstOf(run, state.blockNow, first);
    this.selected = worst?.number ?? this.found[0]?.w.number;
    this.lines.show(run, first);
    this.drawList();
    this.drawAccess();
  }

  // The first execution of each access to global or shared memory, unrolled copies of a line once.
  collect() {
    const { state } = this;
    const block = state.blockNow;
    const found = new Map();
    const known = new Set();
    for (const event of block.steps) {
      const w = block.watchedAt(event);
      if (!w?.access || known.has(w.number)) continue;
      known.add(w.number);
      const at = block.oneAccess(event);
      if (!at || at.place < SHARED) continue;
      const { name, array, variable } = state.now.element(at.place, at.offset);
      const { space } = array ?? variable ?? { space: at.place === SHARED ? "shared" : "global" };
      const key = `${w.file}:${w.source || w.ptx}:${w.kind}:${name}`;
      const warp = this.warpOf(event);
      const one = { w, event, name, space, place: at.place, offset: at.offset, warp, ...this.cost(event, at.place, warp) };
      if (!found.has(key) || found.get(key).waste < one.waste) found.set(key, one);
    }
    return [...found.values()].sort((a, b) => a.w.source - b.w.source || a.w.ptx - b.w.ptx);
  }

  warpOf(event) {
    const block = this.state.blockNow;
    return block.accesses(event)[0].thread >> 5;
  }

  cost(event, place, warp) {
    const block = this.state.blockNow;
    if (place === SHARED) {
      const { wavefronts, conflicts, each } = block.banks(event, warp);
      return { wavefronts, each, waste: conflicts, bad: conflicts > 0, score: plural(wavefronts, "pass", "passes") };
    }
    const { sectors: moved, asked } = block.sectors(event, warp);
    const waste = moved - Math.ceil(asked / 32);
    return { moved, asked, waste, bad: waste > 0 && asked / (32 * moved) < 0.5 && moved > 4, score: plural(moved, "sector") };
  }

  pick(number) {
    const line = this.found.find((one) => one.w.number === number) ?? this.found.find((one) => one.w.source === this.state.now.watched[number].source);
    if (!line) return;
    this.selected = line.w.number;
    this.drawList();
    this.drawAccess();
    this.root.scrollIntoView({ block: "start" });
  }

  drawList() {
    const verbs = { load: "reads", store: "writes", atomic: "updates" };
    replace(
      this.list,
      this.found.map((one) =>
        el(
          "button",
          { type: "button", "aria-pressed": String(one.w.number === this.selected), onclick: () => this.choose(one) },
          el("span", {}, `${verbs[one.w.kind]} ${one.name}`),
          el("b", { class: "number" }, `${one.bad ? "\u25b2 " : ""}${one.score}`),
          el("small", {}, `${one.w.source ? `line ${one.w.source}` : `PTX ${one.w.ptx}`}, ${one.space} memory`),
        )),
    );
  }

  choose(one) {
    this.selected = one.w.number;
    for (const [i, button] of [...this.list.children].entries()) button.setAttribute("aria-pressed", String(this.found[i] === one));
    this.drawAccess();
  }

  drawAccess() {
    const { state } = this;
    const run = state.now;
    const one = this.found.find((item) => item.w.number === this.selected);
    if (!one) {
      replace(this.picture);
      replace(this.text, "This block accesses no memory.");
      return;
    }
    this.lines.mark(run, one.w);
    const lanes = lanesOf(run, state.blockNow, one.event, one.warp);
    const hue = hueAt(run, one.place, one.offset);
    replace(this.code, `${one.w.source || one.w.ptx}  ${(run.sourceLine(one.w) || one.w.name).trim()}`);
    const room = Math.max(320, Math.min(960, this.picture.clientWidth || 900));
    const shared = one.place === SHARED;
    replace(this.picture, shared ? bankPicture(lanes, one, hue, room) : sectorPicture(lanes, hue, room, one));
    replace(this.text, shared ? bankText(one) : sectorText(one, lanes));
  }
}

function sectorText({ moved, asked }, lanes) {
  const used = Math.round((100 * asked) / (32 * moved));
  const shared = asked < lanes.length * lanes[0].width ? " Several threads want the same." : "";
  return [el("b", {}, `${plural(moved, "sector")} of 32 bytes`), ` ${moved === 1 ? "moves" : "move"} ${count(moved * 32)} bytes for the ${count(asked)} that are wanted: ${used}% used.${shared}`];
}

function bankText({ wavefronts, waste }) {
  const why = waste ? "a bank gives one word a pass; hatched ones wait for theirs." : "no two different words in one bank.";
  return [el("b", {}, `${plural(wavefronts, "pass", "passes")} over the 32 banks`), `: ${why}`];
}

function threads(hue, each, lanes, warp) {
  const on = new Set(lanes.map((lane) => lane.lane));
  return [
    svg("text", { x: 0, y: 12, class: "label" }, `32 threads of warp ${warp}`),
    ...Array.from({ length: 32 }, (_, i) => svg("rect", { x: i * each + 0.5, y: 20, width: each - 1, height: 24, style: on.has(i) ? `fill: var(--${hue}1)` : "fill: none; stroke: var(--line)" })),
    ...(each > 18 ? Array.from({ length: 32 }, (_, i) => svg("text", { x: i * each + each / 2, y: 36, "text-anchor": "middle", class: "tiny" }, String(i))) : []),
  ];
}

function sectorPicture(lanes, hue, room, one) {
  const each = room / 32;
  const found = sectors(lanes);
  const n = found.length;
  const few = n <= 8;
  const wide = few ? room / Math.max(4, n) - 8 : room / n - Math.min(3, room / n / 4);
  const y = 150;
  const word = wide / 8;
  const left = (i) => (few ? (room - n * (wide + 8)) / 2 + i * (wide + 8) : i * (room / n));
  const parts = threads(hue, each, lanes, one.warp);
  found.forEach((sector, i) => {
    sector.words.forEach((who, q) => {
      parts.push(svg("rect", { x: left(i) + q * word, y, width: Math.max(0.6, word - (few ? 1 : 0)), height: 38, style: `fill: ${who.size ? `var(--${hue}1)` : "none"}; stroke: var(--${few ? "line" : "hatch"}); stroke-width: ${few ? 1 : 0.5}` }));
      if (who.size > 1 && word > 22) parts.push(svg("text", { x: left(i) + q * word + word / 2, y: y + 24, "text-anchor": "middle", class: "tiny strong" }, `${who.size}\u00d7`));
      for (const lane of who) {
        const [from, to] = [lane * each + each / 2, left(i) + q * word + word / 2];
        parts.push(svg("path", { d: `M${from} 46C${from} 100 ${to} 95 ${to} ${y - 3}`, class: "thread-line", style: `stroke: var(--${hue}2)` }));
      }
    });
    parts.push(svg("rect", { x: left(i) - 1, y: y - 1, width: wide + 1, height: 40, rx: 3, class: "sector" }));
  });
  return picture(room, y + 46, parts, `${plural(lanes.length, "thread")} ask for words in ${plural(n, "sector")}`);
}

function bankPicture(lanes, one, hue, room) {
  const each = room / 32;
  const groups = banks(lanes, one.each);
  const rows = groups.reduce((sum, group) => sum + Math.max(...group.stacks.map((s) => s.length)), 0);
  const high = rows > 8 ? 14 : 24;
  const y = 110;
  const parts = [svg("defs", {}, svg("pattern", { id: "access-hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, svg("rect", { width: 2.2, height: 6, style: "fill: var(--hatch)" }))), ...threads(hue, each, lanes, one.warp)];
  let first = 0;
  groups.forEach((group) => {
    const deep = Math.max(...group.stacks.map((s) => s.length));
    group.stacks.forEach((stack, bank) => {
      for (let q = 0; q < deep; q++) {
        const place = { x: bank * each + 0.5, y: y + (first + q) * high, width: each - 1, height: high - 1 };
        const later = q > 0 || first > 0;
        parts.push(svg("rect", { ...place, style: `fill: ${stack[q] ? `var(--${hue}${later ? 0 : 1})` : "none"}; stroke: var(--line)` }));
        if (!stack[q]) continue;
        if (later) parts.push(svg("rect", { ...place, style: "fill: url(#access-hatch)" }));
        if (stack[q].lanes.length > 1 && each > 18 && high > 13) parts.push(svg("text", { x: place.x + each / 2, y: place.y + high / 2 + 4, "text-anchor": "middle", class: "tiny" }, `${stack[q].lanes.length}\u00d7`));
        for (const lane of stack[q].lanes) {
          const [from, to] = [lane * each + each / 2, bank * each + each / 2];
          parts.push(svg("path", { d: `M${from} 46C${from} 80 ${to} 70 ${to} ${place.y - 2}`, class: later ? "thread-line later" : "thread-line", style: `stroke: var(--${later ? "faint" : `${hue}2`})` }));
        }
      }
    });
    first += deep;
  });
  if (each > 18) for (let bank = 0; bank < 32; bank++) parts.push(svg("text", { x: bank * each + each / 2, y: y + rows * high + 14, "text-anchor": "middle", class: "tiny mute" }, String(bank)));
  return picture(room, y + rows * high + 22, parts, `Words that ${plural(lanes.length, "thread")} ask of the 32 banks`);
}

function picture(room, high, parts, label) {
  return svg("svg", { width: room, height: high, viewBox: `0 0 ${room} ${high}`, role: "img", "aria-label": label, class: "access-picture" }, parts);
}
