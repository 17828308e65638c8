// The memory system: one warp's access as sectors or banks, and the counters of every line.
import { el, replace, setText } from "./dom.js";
import { bytes, count, hand, plural, ranges } from "./format.js";
import { Limits } from "./limits.js";
import { SHARED } from "./run.js";
import { banks, lanesOf, sectors } from "./warp.js";
import { isOf, worstOf } from "./worst.js";

const COLUMNS = [
  ["line", "Line"],
  ["code", "Code"],
  ["requests", "Global requests"],
  ["sectors", "Sectors"],
  ["per", "Sectors a request"],
  ["shared", "Shared wavefronts"],
  ["conflicts", "Bank conflicts"],
  ["flops", "FLOPs"],
  ["warps", "Warp instructions"],
];

export class Memory {
  constructor(state) {
    this.state = state;
    this.sort = { by: "sectors", down: true };
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
    this.table = el("table", { class: "counters", id: "counters" });
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
          this.table,
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
    this.drawTable(run);
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
    this.mark(run, w);
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

  // The row of the source line that the access above comes from.
  mark(run, w) {
    const path = w.file >= 0 ? run.sources[w.file].path : "";
    for (const item of this.table.querySelectorAll("tbody tr")) {
      const on = item.dataset.file === path && Number(item.dataset.line) === w.source;
      item.classList.toggle("here", on);
      if (on) item.setAttribute("aria-current", "true");
      else item.removeAttribute("aria-current");
    }
  }

  // The first recorded instruction of a line that accesses memory.
  accessOf(run, line) {
    return [...this.first.keys()].find((number) => isOf(run, number, line));
  }

  drawTable(run) {
    const rows = run.lines
      .map((line) => row(line))
      .filter((r) => r.requests || r.shared || r.flops || r.warps);
    const { by, down } = this.sort;
    rows.sort(
      (a, b) =>
        (typeof a[by] === "string" ? a[by].localeCompare(b[by]) : a[by] - b[by]) * (down ? -1 : 1),
    );
    const most = Object.fromEntries(
      COLUMNS.map(([key]) => [
        key,
        Math.max(1, ...rows.map((r) => (typeof r[key] === "number" ? r[key] : 0))),
      ]),
    );
    const heading = ([key, text]) =>
      el(
        "th",
        { scope: "col", "aria-sort": key === by ? (down ? "descending" : "ascending") : "none" },
        el(
          "button",
          { type: "button", onclick: () => this.resort(run, key) },
          text,
          el("span", { "aria-hidden": "true" }, key === by ? (down ? " \u25be" : " \u25b4") : ""),
        ),
      );
    replace(
      this.table,
      el("caption", { class: "sr" }, "Counters of each source line"),
      el("thead", {}, el("tr", {}, COLUMNS.map(heading))),
      el(
        "tbody",
        {},
        rows.map((r) =>
          el(
            "tr",
            { "data-line": r.line, "data-file": r.file },
            COLUMNS.map(([key]) => cell(r, key, most[key], this.chosen(run, r))),
          ),
        ),
      ),
    );
  }

  chosen(run, line) {
    const number = this.accessOf(run, line);
    return number === undefined ? null : () => this.go(number);
  }

  resort(run, by) {
    this.sort = {
      by,
      down: this.sort.by === by ? !this.sort.down : by !== "line" && by !== "code",
    };
    this.drawTable(run);
    this.draw();
    this.table.querySelector('[aria-sort]:not([aria-sort="none"]) button')?.focus();
  }
}

function cell(r, key, most, go) {
  if (key === "code") {
    const code = el("code", {}, r.code);
    const shown = go ? el("button", { type: "button", class: "line", onclick: go }, code) : code;
    return el("td", { class: "code-cell" }, shown);
  }
  if (key === "line") return el("td", {}, r.line ? String(r.line) : "\u2013");
  const value = r[key];
  const bar = el("meter", { min: 0, max: most, value, "aria-hidden": "true" });
  return el(
    "td",
    { class: "number" },
    value ? [el("span", {}, key === "per" ? value.toFixed(2) : count(value)), bar] : "",
  );
}

function row(line) {
  const c = line.counters;
  const sum = (space, name) =>
    ["load", "store", "atomic"].reduce((n, kind) => n + (c[`${space}_${kind}`]?.[name] ?? 0), 0);
  const requests = sum("global", "requests");
  return {
    line: line.line,
    file: line.file,
    code: line.code,
    requests,
    sectors: sum("global", "sectors"),
    per: requests ? sum("global", "sectors") / requests : 0,
    shared: sum("shared", "wavefronts"),
    conflicts: sum("shared", "bank_conflicts"),
    flops: c.flops,
    warps: c.warp_instructions,
  };
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
