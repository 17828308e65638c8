// The memory system: one warp's access as sectors or banks, and the counters of every line.
import { el, replace, setText } from "./dom.js";
import { bytes, hand, plural, ranges } from "./format.js";
import { Limits } from "./limits.js";
import { Lines } from "./lines.js";
import { SHARED } from "./run.js";
import { banks, lanesOf, sectors } from "./warp.js";
import { worstOf } from "./worst.js";

export class Memory {
  constructor(state) {
    this.state = state;
    this.what = el("p", { class: "answer", id: "access", "aria-live": "polite" });
    this.picture = el("div", {
      class: "picture",
      id: "picture",
      tabindex: 0,
      role: "group",
      "aria-label": "The warp's access",
    });
    this.choice = el("select", {
      id: "access-line",
      onchange: () => this.go(Number(this.choice.value)),
    });
    this.warp = el("select", {
      id: "warp",
      onchange: () => state.update({ thread: Number(this.warp.value) * 32 }),
    });
    this.lines = new Lines((number) => this.go(number));
    this.limits = new Limits(state);
    this.root = el(
      "div",
      {},
      el(
        "section",
        { class: "panel", "aria-label": "A warp's access" },
        el("h2", {}, "One warp, one access"),
        el(
          "div",
          { class: "bar" },
          el("label", { for: "access-line" }, "Instruction "),
          this.choice,
          el("label", { for: "warp" }, " Warp "),
          this.warp,
        ),
        this.what,
        this.picture,
      ),
      el(
        "section",
        { class: "panel", "aria-label": "Counters of each source line" },
        el("h2", {}, "Where the traffic is"),
        el("p", { class: "hint" }, `The whole launch, all blocks. ${hand()} a heading to sort, a line of code to see its access above.`),
        el(
          "div",
          { class: "scroll", tabindex: 0, role: "group", "aria-label": "Counters" },
          this.lines.table,
        ),
      ),
      this.limits.root,
    );
  }

  prepare(run, block) {
    const key = `${run.number}:${block.number}`;
    if (this.key === key) return;
    this.key = key;
    const first = new Map();
    for (let step = 0; step < block.events.length; step++) {
      const w = block.watchedAt(step);
      if (w && w.access && !first.has(w.number) && drawn(block, step))
        first.set(w.number, step);
    }
    this.first = first;
    replace(
      this.choice,
      [...first.keys()].map((number) => {
        const w = run.watched[number];
        return el(
          "option",
          { value: number },
          `${w.source ? `line ${w.source}: ` : ""}${w.name} (PTX ${w.ptx})`,
        );
      }),
    );
    replace(
      this.warp,
      Array.from({ length: run.warps }, (_, i) => el("option", { value: i }, String(i))),
    );
    this.lines.show(run, first);
    this.limits.draw(run);
  }

  go(number) {
    const { blockNow, thread } = this.state;
    const warp = Math.floor(thread / 32);
    for (let step = 0; step < blockNow.events.length; step++) {
      const w = blockNow.watchedAt(step);
      if (w && w.number === number && lanesOf(this.state.now, blockNow, step, warp).length) {
        this.state.update({ mode: "all", step });
        return;
      }
    }
    this.state.update({ mode: "all", step: this.first.get(number) });
  }

  draw() {
    const { state } = this;
    const run = state.now;
    const block = state.blockNow;
    this.prepare(run, block);
    if (this.opened !== run.number && state.stop === 0) {
      this.opened = run.number;
      const worst = worstOf(run, block, this.first);
      if (worst) {
        state.thread ||= worst.thread; // one that was picked stays
        this.go(worst.number);
        return;
      }
    }
    this.opened = run.number;
    const warp = Math.floor(state.thread / 32);
    this.warp.value = warp;
    const step = nearest(run, block, state.step, warp);
    if (step < 0) {
      setText(this.what, `Warp ${warp} accesses no memory in this block.`);
      replace(this.picture);
      return;
    }
    const w = block.watchedAt(step);
    this.choice.value = w.number;
    this.lines.mark(run, w);
    const lanes = lanesOf(run, block, step, warp);
    if (lanes[0].place === SHARED) this.drawBanks(run, w, lanes, warp, block.banks(step, warp));
    else this.drawSectors(run, w, lanes, warp, block.sectors(step, warp));
  }

  drawSectors(run, w, lanes, warp, { sectors: moved, asked }) {
    const found = sectors(lanes);
    const { name } = run.element(lanes[0].place, lanes[0].offset);
    const share = Math.round((100 * asked) / (32 * moved));
    setText(
      this.what,
      `Warp ${warp}, ${w.name} on ${name}: ${plural(lanes.length, "lane")} of ${w.width} B ask for ${asked} distinct bytes, in ${plural(moved, "sector")} of 32 B (${bytes(moved * 32)}): ${share}% used. ${verdict(lanes, moved, asked)}`,
    );
    replace(
      this.picture,
      laneStrip(lanes),
      el(
        "table",
        { class: "sectors" },
        el("caption", { class: "sr" }, "Sectors, and the lanes in each 4-byte word"),
        el(
          "tbody",
          {},
          found.map((sector) =>
            el(
              "tr",
              {},
              el(
                "th",
                { scope: "row" },
                run.element(sector.place, Math.max(0, sector.sector * 32)).label,
              ),
              sector.words.map((who) =>
                el("td", { class: who.size ? "on" : null }, who.size ? ranges(who) : ""),
              ),
            ),
          ),
        ),
      ),
    );
  }

  drawBanks(run, w, lanes, warp, { wavefronts, conflicts, each }) {
    const groups = banks(lanes, each);
    const { name } = run.element(SHARED, lanes[0].offset);
    const words = new Set(groups.flatMap((g) => g.stacks.flat().map((s) => s.word))).size;
    const served = groups.length > 1 ? `, in groups of ${each} lanes` : "";
    const reading = conflicts
      ? `bank conflicts add ${conflicts}.`
      : `no bank conflict.`;
    setText(
      this.what,
      `Warp ${warp}, ${w.name} on ${name} in shared memory: ${plural(lanes.length, "lane")} ask for ${plural(words, "distinct word")}. ${plural(wavefronts, "wavefront")}${served}: ${reading}`,
    );
    const rows = groups.flatMap(({ first, last, stacks }) =>
      Array.from({ length: Math.max(...stacks.map((s) => s.length)) }, (_, i) =>
        el(
          "tr",
          {},
          el(
            "th",
            { scope: "row" },
            groups.length > 1 && !i ? `${i + 1} (lanes ${first}\u2013${last})` : String(i + 1),
          ),
          stacks.map((stack) =>
            el(
              "td",
              { class: stack[i] ? (i ? "on more" : "on") : null },
              stack[i] ? ranges(stack[i].lanes) : "",
            ),
          ),
        ),
      ),
    );
    const deepest = rows.length;
    replace(
      this.picture,
      laneStrip(lanes),
      el(
        "table",
        { class: deepest > 8 ? "banks deep" : "banks" },
        el(
          "caption",
          {},
          "Columns are the 32 banks; a word below another in the same bank has to wait its turn. In the cells: lanes.",
        ),
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            el("th", { scope: "col" }, "bank"),
            Array.from({ length: 32 }, (_, i) => el("th", { scope: "col" }, String(i))),
          ),
        ),
        el("tbody", {}, rows),
      ),
    );
  }
}

// Whether an access is to global or shared memory: how local memory is laid out is not drawn.
function drawn(block, step) {
  return block.oneAccess(step)?.place >= SHARED;
}

// The warp's access at a step; else its last before, else its first.
function nearest(run, block, step, warp) {
  for (let s = step; s >= 0; s--)
    if (block.watchedAt(s)?.access && drawn(block, s) && lanesOf(run, block, s, warp).length) return s;
  for (let s = step; s < block.events.length; s++)
    if (block.watchedAt(s)?.access && drawn(block, s) && lanesOf(run, block, s, warp).length) return s;
  return -1;
}

function laneStrip(lanes) {
  const on = new Set(lanes.map((l) => l.lane));
  return el(
    "div",
    { class: "lanes", role: "img", "aria-label": `Lanes ${ranges(on)} take part` },
    Array.from({ length: 32 }, (_, i) => el("span", { class: on.has(i) ? "on" : null }, String(i))),
  );
}

function verdict(lanes, moved, asked) {
  if (lanes.length > 1 && asked <= lanes[0].width) return "A broadcast: all lanes want the same.";
  if (asked === moved * 32) return "Fully coalesced.";
  if (moved >= lanes.length && lanes.length > 4)
    return "Every lane has a sector of its own: not coalesced.";
  return "";
}
