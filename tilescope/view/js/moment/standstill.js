// The moment at which threads stand still: the block's threads, a row for each warp, by what they do.
import { el, replace } from "../draw/dom.js";
import { colours, hatch } from "../draw/colours.js";
import { capital, plural } from "../model/format.js";
import { Moment, DISCS } from "./moment.js";

const MAX_ROWS = 32;
const LANES = 32;
const DOES = { waits: "waiting at", loops: "looping at", runs: "running at", left: "have left the kernel", "not begun": "have not begun" };

export class Standstill extends Moment {
  constructor(state) {
    super(state, "The threads of the block at the moment of the hazard");
  }

  draw(room) {
    const { state, lens, moment: m } = this;
    const run = state.now;
    const narrow = room < 560;
    const label = narrow ? 30 : 62;
    const shown = Math.min(MAX_ROWS, run.warps);
    const start = Math.max(0, Math.min(run.warps - shown, (m.thread >> 5) - shown / 2));
    const first = Math.floor(start);
    const cell = Math.max(6, Math.min(narrow ? 12 : 20, (Math.min(room, 780) - label - 4) / LANES, 460 / shown));
    const top = 12;
    const keys = top + shown * (cell + 3) + 22;
    lens.begin(label + LANES * cell + 4, keys + m.groups.length * 24, room);
    const groupOf = this.groups(run.threads);
    for (let row = 0; row < shown; row++) {
      const y = top + row * (cell + 3);
      lens.text(label - 8, y + cell / 2 + 4, narrow ? `w${first + row}` : `warp ${first + row}`, { size: 11.5, anchor: "end", fill: "mute" });
      for (let lane = 0; lane < LANES; lane++) {
        const thread = (first + row) * LANES + lane;
        if (thread < run.threads) this.square(label + lane * cell, y, cell - 1.5, m.groups[groupOf[thread]]);
      }
    }
    const at = m.thread - first * LANES;
    lens.ring(label + (at % LANES) * cell - 1, top + Math.floor(at / LANES) * (cell + 3) - 1, cell + 0.5, cell + 1, "ink", 2);
    m.groups.forEach((group, i) => {
      const y = keys + i * 24;
      this.square(label, y - 11, 15, group);
      const disc = this.discOf(group);
      lens.text(label + 24, y + 1, `${disc} ${group.text}: ${what(group)}`.trim(), { size: narrow ? 12.5 : 14, weight: i ? 400 : 650 });
    });
    lens.spot({
      x: label, y: top, w: LANES * cell, h: shown * (cell + 3),
      say: (x, y) => this.sayThread(groupOf, (first + Math.floor(y / (cell + 3))) * LANES + Math.floor(x / cell)),
      grid: { rows: shown, cols: LANES, cell, tall: cell + 3, name: "threads" },
    });
    lens.end();
    this.heading(`Threads of ${run.blockName(m.block)}`, el("small", {}, ` after step ${m.step + 1}`));
    this.drawPanel();
  }

  // Place in the list of groups, for each thread.
  groups(threads) {
    const found = new Array(threads).fill(0);
    this.moment.groups.forEach((group, i) => group.ranges.forEach(([from, to]) => found.fill(i, from, to)));
    return found;
  }

  // The number at which code and timeline mark a group.
  discOf(group) {
    const marked = this.moment.groups.filter((one) => one.state === "waits" || one.state === "loops");
    return DISCS[marked.indexOf(group)] ?? "";
  }

  square(x, y, size, group) {
    const { lens } = this;
    const c = colours();
    const fill = { waits: "c0", loops: "x1", runs: "c1", left: "page", "not begun": "page" }[group.state];
    lens.rect(x, y, size, size, fill);
    if (group.state === "waits") {
      lens.pen.fillStyle = hatch(lens.pen, "wait");
      lens.pen.fillRect(x, y, size, size);
    }
    if (group.state === "left" || group.state === "not begun") lens.border(x + 0.5, y + 0.5, size - 1, size - 1, c.faint);
  }

  sayThread(groupOf, thread) {
    const { base, moment: m } = this;
    if (thread < 0 || thread >= base.threads) return null;
    const name = base.threadName(thread);
    const group = m.groups[groupOf[thread]];
    return [[capital(name), "strong"], [`: ${what(group).replace("have", "has")}.`]];
  }

  drawPanel() {
    const { moment: m, base } = this;
    const { file } = base.story.code ?? {};
    replace(
      this.panel,
      m.groups.map((group) => el("div", { class: "group" },
        el("span", { class: `big number${group.state === "loops" ? " wrong" : ""}` }, String(group.count)),
        el("span", {}, ` ${group.count === 1 ? "thread" : "threads"} ${what(group)}`),
        group.line && file !== undefined ? el("pre", { class: "code-line" }, (base.sources[file].lines[group.line - 1] ?? "").trim()) : null)),
      el("p", { class: "mute" }, `${plural(base.threads, "thread")} in the block. ${m.kind === "for ever" ? "On a GPU this kernel never ends." : "A barrier needs all threads of the block."}`),
    );
  }
}

function what(group) {
  return group.line ? `${DOES[group.state]} line ${group.line}` : DOES[group.state] === "running at" ? "have not arrived" : DOES[group.state];
}
