// Threads arriving at barriers, waiting, released; and the hazards that were found.
import { el, replace, setText, svg } from "./dom.js";
import { count, plural, ranges } from "./format.js";
import { momentOf } from "./hazards.js";
import { RELEASE } from "./run.js";

const ROW = 20;
const LEFT = 92;

export class Barriers {
  constructor(state) {
    this.state = state;
    this.status = el("p", { class: "answer", id: "arrivals", "aria-live": "polite" });
    this.chart = el("div", {
      class: "chart",
      tabindex: 0,
      role: "group",
      "aria-label": "Arrivals at barriers over the steps of the block",
    });
    this.rowsNow = el("ul", { class: "states", id: "states" });
    this.findings = el("div", { id: "findings" });
    this.root = el(
      "div",
      { class: "columns" },
      el(
        "section",
        { class: "panel", "aria-label": "Hazards" },
        el("h2", {}, "Hazards"),
        this.findings,
      ),
      el(
        "section",
        { class: "panel wide", "aria-label": "Barriers" },
        el("h2", {}, "Who waits for whom"),
        this.status,
        this.chart,
        el(
          "p",
          { class: "legend" },
          el("span", { class: "key run" }, "runs"),
          el("span", { class: "key wait" }, "waits at a barrier"),
          el("span", { class: "key open" }, "barrier opens"),
          el("span", { class: "key" }, "thin line: could run, another has its turn"),
        ),
        this.rowsNow,
      ),
    );
  }

  draw() {
    const { state } = this;
    const run = state.now;
    const block = state.blockNow;
    this.drawHazards(run);
    const rows = lanesOf(block);
    this.drawChart(run, block, rows);
    const at = rows.map((row) => ({ row, state: stateAt(row, state.step) }));
    const waiting = at.filter((r) => r.state.kind === "waits");
    setText(this.status, status(run, block, state.step, at, waiting, rows));
    replace(
      this.rowsNow,
      at.map(({ row, state: s }) =>
        el("li", { class: s.kind }, el("strong", {}, row.name), " ", s.text),
      ),
    );
  }

  drawHazards(run) {
    const key = `${run.number}:${this.state.hazard ? this.state.hazard.number : ""}`;
    if (this.hazardKey === key) return;
    this.hazardKey = key;
    if (!run.hazards.length) {
      const checked = run.checks.length
        ? `None found. Checked: ${run.checks.join(", ")}.`
        : "Not checked: this run was made without checks.";
      replace(this.findings, el("p", {}, checked));
      return;
    }
    const groups = new Map();
    run.hazards.forEach((hazard, number) => {
      const key = JSON.stringify([
        hazard.kind,
        hazard.severity,
        hazard.variable,
        hazard.involved.map((item) => [item.role, item.line || item.ptx_line]),
      ]);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(number);
    });
    // Errors first; of them races, and of these the ones with a cure.
    const rank = ([number]) => {
      const { severity, race, cure_text: cure } = run.hazards[number];
      return (severity === "error" ? 0 : 4) + (race ? 0 : 2) + (cure ? 0 : 1);
    };
    const sorted = [...groups.values()].sort((a, b) => rank(a) - rank(b));
    replace(
      this.findings,
      together(run, sorted).map(([first, ...others]) =>
        this.card(run, run.hazards[first[0]], first[0], first.length - 1, others),
      ),
    );
  }

  card(run, hazard, number, more, others) {
    const on =
      this.state.hazard &&
      [number, ...others.map((one) => one[0])].includes(this.state.hazard.number) &&
      this.state.hazard.run === run.number;
    const rows = hazard.involved.map((item, i) =>
      el(
        "li",
        {},
        el("b", {}, `${"\u2460\u2461\u2462"[i] ?? ""} ${item.role}`),
        ` line ${item.line || item.ptx_line}`,
        el("code", {}, item.code || item.instruction),
      ),
    );
    return el(
      "article",
      { class: `finding ${hazard.severity}${on ? " on" : ""}` },
      el("h3", {}, el("span", { class: "tag" }, hazard.severity), " ", hazard.message),
      el("ol", {}, rows),
      el("p", {}, howOften(hazard, more)),
      hazard.cure_text ? el("p", { class: "cure" }, `Cure: ${hazard.cure_text}`) : null,
      hazard.cure_diff.length ? diff(hazard.cure_diff) : null,
      hazard.notes.map((note) => el("p", { class: "hint" }, note)),
      el(
        "button",
        { type: "button", class: "jump", onclick: () => this.jump(run, number) },
        "Go to the moment",
      ),
      others.length ? el("p", { class: "mended" }, "The same cure mends") : null,
      others.map(([other]) => this.also(run, run.hazards[other], other)),
    );
  }

  // Another hazard that a card's cure mends.
  also(run, hazard, number) {
    return el(
      "div",
      { class: "also" },
      el("span", { class: "tag" }, hazard.severity),
      ` ${hazard.message} `,
      el(
        "button",
        { type: "button", class: "jump", onclick: () => this.jump(run, number) },
        "Go to the moment",
      ),
    );
  }

  jump(run, number) {
    const moment = momentOf(run, number);
    if (!moment) {
      setText(this.status, "The steps of this hazard are not among those recorded.");
      return;
    }
    this.state.update({
      view: "steps",
      run: run.number,
      block: moment.block,
      thread: moment.thread,
      mode: "all",
      step: moment.step,
      hazard: { ...moment, number },
    });
  }

  drawChart(run, block, rows) {
    const key = `${run.number}:${block.number}:${this.chart.clientWidth}`;
    if (this.chartKey !== key) {
      this.chartKey = key;
      this.build(run, block, rows);
    }
    const x = this.x(this.state.step + 0.5);
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
  }

  x(step) {
    return this.left + (step * (this.wide - this.left - 8)) / this.total;
  }

  build(run, block, rows) {
    this.total = Math.max(1, block.events.length);
    this.wide = Math.max(300, this.chart.clientWidth - 4);
    const unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 15;
    this.left = LEFT * unit;
    const tall = 12 * unit;
    const height = (rows.length * ROW + 26) * unit;
    const parts = [
      svg(
        "defs",
        {},
        svg(
          "pattern",
          {
            id: "waiting",
            width: 6,
            height: 6,
            patternUnits: "userSpaceOnUse",
            patternTransform: "rotate(45)",
          },
          svg("rect", { width: 6, height: 6, class: "wait-paper" }),
          svg("rect", { width: 2, height: 6, class: "wait-ink" }),
        ),
      ),
    ];
    rows.forEach((row, i) => {
      const y = (6 + i * ROW) * unit;
      parts.push(svg("text", { x: 4, y: y + tall, class: "row-name" }, row.name));
      parts.push(
        svg("line", {
          x1: this.x(0),
          x2: this.x(row.end),
          y1: y + 2 + tall / 2,
          y2: y + 2 + tall / 2,
          class: "ready",
        }),
      );
      for (const [from, to] of row.runs)
        parts.push(
          svg("rect", {
            x: this.x(from),
            y: y + 2,
            width: Math.max(1, this.x(to) - this.x(from)),
            height: tall,
            class: "runs",
          }),
        );
      for (const [from, to] of row.waits)
        parts.push(
          svg("rect", {
            x: this.x(from),
            y: y + 2,
            width: Math.max(2, this.x(to) - this.x(from)),
            height: tall,
            fill: "url(#waiting)",
            class: "waits",
          }),
        );
    });
    block.events.forEach((e, step) => {
      if (block.batch.watched[e] === RELEASE)
        parts.push(
          svg("line", {
            x1: this.x(step + 0.5),
            x2: this.x(step + 0.5),
            y1: 2,
            y2: height - 18 * unit,
            class: "opens",
          }),
        );
    });
    this.cursor = svg("line", { y1: 0, y2: height - 14 * unit, class: "cursor" });
    parts.push(
      svg(
        "text",
        { x: this.wide - 8, y: height - 4, class: "row-name", "text-anchor": "end" },
        "steps of the block \u2192",
      ),
      this.cursor,
    );
    const picture = svg(
      "svg",
      {
        width: this.wide,
        height,
        role: "img",
        "aria-label": `${plural(rows.length, "row")}, ${plural(this.total, "step")}`,
      },
      parts,
    );
    picture.addEventListener("click", (event) => {
      const part =
        (event.clientX - picture.getBoundingClientRect().left - this.left) /
        (this.wide - this.left - 8);
      this.state.update({
        mode: "all",
        step: Math.max(0, Math.min(this.total - 1, Math.floor(part * this.total))),
      });
    });
    replace(this.chart, picture);
  }
}

// Groups of hazards that one cure mends, side by side; the others alone.
function together(run, groups) {
  const cards = new Map();
  for (const numbers of groups) {
    const cure = run.hazards[numbers[0]].cure_group;
    const key = cure < 0 ? `alone ${numbers[0]}` : cure;
    if (!cards.has(key)) cards.set(key, []);
    cards.get(key).push(numbers);
  }
  return [...cards.values()];
}

function diff(lines) {
  const kinds = { "+": "added", "-": "removed" };
  return el(
    "pre",
    { class: "diff", tabindex: 0, role: "group", "aria-label": "The cure as a diff" },
    lines.map((line) => el("span", { class: kinds[line[0]] ?? null }, `${line}\n`)),
  );
}

function howOften(hazard, more) {
  const number = count(hazard.count);
  const said = hazard.notes.some((note) => note.startsWith(`${number} `));
  const often = said ? "" : `${number} ${hazard.race ? "pairs of threads" : "times"}.`;
  return `${often}${more ? ` ${count(more)} more like this, on other elements.` : ""}`.trim();
}

// A row for each warp; for a block of one warp, for each thread.
function lanesOf(block) {
  if (block.rows) return block.rows;
  const { run } = block;
  const byThread = run.warps === 1;
  const size = byThread ? run.threads : run.warps;
  const rows = Array.from({ length: size }, (_, i) => ({
    name: byThread ? run.threadName(i) : `warp ${i}`,
    index: i,
    runs: [],
    waits: [],
    exit: null,
    since: null,
    line: 0,
    end: block.events.length,
  }));
  block.events.forEach((e, step) => {
    const w = block.watchedOf(e);
    const here = new Set();
    block.batch.each(e, block.column, (t) => here.add(byThread ? t : Math.floor(t / 32)));
    for (const i of here) mark(rows[i], step, w);
  });
  for (const row of rows)
    if (row.since !== null) row.waits.push([row.since, block.events.length, row.line, true]);
  block.rows = rows;
  return rows;
}

function mark(row, step, w) {
  if (!w) {
    if (row.since !== null) row.waits.push([row.since, step + 0.5, row.line, false]);
    row.since = null;
    return;
  }
  const last = row.runs[row.runs.length - 1];
  if (last && last[1] >= step - 0.01) last[1] = step + 1;
  else row.runs.push([step, step + 1]);
  if (w.kind === "barrier" && !w.name.includes("arrive")) {
    row.since = step + 0.5;
    row.line = w.source;
    row.runs[row.runs.length - 1][1] = step + 0.5;
  }
  if (w.kind === "exit") {
    row.exit = step;
    row.end = step + 1;
  }
}

function stateAt(row, step) {
  for (const [from, to, line, forever] of row.waits) {
    if (step + 0.5 >= from && step + 0.5 < to)
      return {
        kind: "waits",
        line,
        text: `waits, line ${line}${forever ? ", for ever" : ""}`,
      };
  }
  if (row.exit !== null && step >= row.exit) return { kind: "gone", text: "is done" };
  const runs = row.runs.some(([from, to]) => step + 0.5 >= from && step + 0.5 <= to);
  return runs ? { kind: "runs", text: "runs" } : { kind: "ready", text: "could run" };
}

function status(run, block, step, at, waiting, rows) {
  const unit = run.warps === 1 ? "thread" : "warp";
  const barriers = rows.some((row) => row.waits.length);
  if (!barriers) return `No barrier in this kernel's run: nobody waits. Schedule: ${run.schedule}.`;
  const here = `Schedule ${run.schedule}, step ${block.countOf(step)} of the block: `;
  if (!block.watchedAt(step)) return `${here}the barrier opens, and all go on.`;
  if (!waiting.length) return `${here}nobody waits.`;
  const missing = at.filter((r) => r.state.kind === "runs" || r.state.kind === "ready");
  const names = missing.length
    ? ` Missing: ${unit} ${ranges(missing.map((r) => r.row.index))}.`
    : "";
  return `${here}${waiting.length} of ${plural(at.length, unit)} wait${waiting.length === 1 ? "s" : ""} at the barrier in line ${waiting[0].state.line}.${names}`;
}
