// Shared memory after each barrier, a row each; lines are the reads that made the picked value.
import { Lens } from "../draw/lens.js";
import { colours } from "../draw/colours.js";
import { drawBars } from "../draw/sheet.js";
import { full } from "../draw/numbers.js";
import { SHARED_ROW, hueOf, hueOfVariable } from "../model/story.js";
import { plural } from "../model/format.js";

const COMBINED = {
  sum: (x, y, made) => `${x} + ${y} = ${made}`,
  product: (x, y, made) => `${x} \u00d7 ${y} = ${made}`,
  maximum: (x, y, made) => `max(${x}, ${y}) = ${made}`,
  minimum: (x, y, made) => `min(${x}, ${y}) = ${made}`,
  of: (x, y, made) => `${made} of ${x}, ${y}`,
};

export class Rows {
  constructor(state) {
    this.state = state;
    this.own = true;
    this.lens = new Lens("Shared memory after each barrier");
    this.root = this.lens.root;
  }

  // The rows with their edges by target, once a block.
  prepare() {
    const { state } = this;
    const run = state.now;
    const key = `${state.run}:${state.block}`;
    if (this.key === key) return;
    this.key = key;
    const variable = run.shared[run.story.variable];
    const global = (row) => run.byPlace.get(row.place);
    this.rows = state.story.rows.map((row) => {
      const values = run.pool.data(row.values);
      const edges = run.pool.data(row.edges);
      const from = new Map();
      for (let i = 0; i < row.count; i++) {
        const [to, source] = [edges[2 * i], edges[2 * i + 1]];
        if (!from.has(to)) from.set(to, []);
        from.get(to).push(source);
      }
      const top = values.reduce((most, v) => (Number.isFinite(v) ? Math.max(most, Math.abs(v)) : most), 0) || 1;
      const shared = row.place === SHARED_ROW;
      return {
        ...row, values, from, top, shared, operations: new Map(row.combined.flatMap(([name, made]) => [...run.pool.data(made)].map((i) => [i, name]))),
        hue: shared ? (row.made ? "c" : this.rows0Hue(run, variable, state.story.rows)) : hueOf(run, global(row)),
      };
    });
    this.phaseEnds = state.story.releases;
  }

  rows0Hue(run, variable, rows) {
    const first = run.byPlace.get(rows[0]?.place);
    return first ? hueOf(run, first) : hueOfVariable(run, variable);
  }

  // Number of rows that are complete after a number of steps.
  rowsNow() {
    const { state, rows } = this;
    if (state.pos === state.story.count) return rows.length;
    const opened = state.story.releases.filter((step) => step < state.pos).length;
    const shared = rows.filter((row) => row.shared).length;
    const first = rows[0]?.shared ? 0 : 1;
    return Math.min(first + shared, (state.pos > 0 || opened ? first : 0) + opened);
  }

  draw(room) {
    const { state, lens } = this;
    this.prepare();
    const { rows } = this;
    const narrow = room < 560;
    const wide = Math.min(980, room);
    const [label, equation] = narrow ? [0, 0] : [104, 150];
    const W = wide - label - equation;
    const many = rows.length > 14 && !narrow;
    const step = narrow ? 44 : many ? Math.max(15, Math.min(26, 440 / rows.length)) : 37;
    const bar = many ? Math.min(13, step - 7) : 17;
    const width = Math.max(1, ...rows.map((row) => row.width));
    const each = W / width;
    const X = (i) => label + (i + 0.5) * each;
    const head = narrow ? 18 : 14;
    lens.begin(wide, rows.length * step + head + 6, room);
    const now = this.rowsNow();
    this.now = now;
    const pick = this.picked(width);
    const cones = this.cones(now, pick);
    rows.forEach((row, r) => {
      const y = r * step + head;
      if (r && r < now) this.edges(row, r, y - step + bar, y - (narrow ? 14 : 0), X, cones[r], narrow);
    });
    const c = colours();
    rows.forEach((row, r) => {
      const y = r * step + head;
      const on = r < now;
      lens.rect(label, y, W, bar, "page");
      if (on)
        for (const i of cones[r]) lens.rect(label + i * each, y, each + 0.3, bar, `${row.hue}0`);
      if (on)
        drawBars(lens.pen, { x: label, y, wide: W * (row.width / width), high: bar, count: row.width, top: row.top, value: (i) => row.values[i], colour: (i) => c[`${row.hue}${cones[r].has(i) ? 2 : 1}`] });
      lens.border(label + 0.5, y + 0.5, W - 1, bar - 1, "line");
      const here = pickIn(row, pick);
      if (here !== null) lens.ring(label + here * each - 0.8, y - 1.5, each + 1.6, bar + 3, "ink", on ? 1.6 : 0.8);
      this.labels(row, r, y, bar, narrow, wide, label + W + 12, on, here);
      lens.spot({
        x: label, y: y - 2, w: W, h: bar + 4,
        say: (x) => this.say(row, Math.floor(x / each), on),
        pick: (x) => this.pick(Math.floor(x / each)),
        grid: { rows: 1, cols: row.width, cell: each, tall: bar + 4, name: row.name },
      });
    });
    if (!narrow) lens.text(label + W + 12, 9, `Element ${pick}`, { size: 12.5, weight: 700 });
    lens.end();
  }

  // The picked element of the last row, as an index in shared memory.
  picked(width) {
    const { state, rows } = this;
    const last = rows[rows.length - 1];
    if (last && !last.shared && last.width === 1) return last.from.get(0)?.[0] ?? 0;
    return Math.min(width - 1, state.thread);
  }

  pick(index) {
    this.state.pick({ thread: Math.min(this.state.now.threads - 1, index) });
  }

  // Elements behind the picked one, for each row.
  cones(now, pick) {
    const { rows } = this;
    const cones = rows.map(() => new Set());
    const last = Math.max(0, now - 1);
    const start = pickIn(rows[last], pick);
    if (start === null) return cones;
    cones[last].add(start);
    for (let r = last; r > 0; r--)
      for (const i of cones[r]) for (const source of rows[r].from.get(i) ?? (rows[r].shared ? [i] : [])) cones[r - 1].add(source);
    return cones;
  }

  // All lines as faint hairlines, thinned; the picked value's strong.
  edges(row, r, y0, y1, X, cone, narrow) {
    const { lens } = this;
    const every = row.width > 128 ? (row.reach > 32 ? 8 : row.reach > 4 ? 4 : 2) : 1;
    let faint = "";
    let strong = "";
    for (const [to, sources] of row.from)
      for (const source of sources) {
        const line = `M${X(source).toFixed(1)} ${y0}L${X(to).toFixed(1)} ${y1}`;
        if (cone.has(to)) strong += line;
        else if (!narrow && source !== to && to % every === 0) faint += line;
      }
    for (const to of cone) if (row.shared && !row.from.has(to)) strong += `M${X(to).toFixed(1)} ${y0}V${y1}`;
    if (faint) lens.shape(faint, "fill: none; stroke: var(--hatch); stroke-width: 0.5");
    if (strong) lens.shape(strong, `fill: none; stroke: var(--${row.hue}2); stroke-width: ${cone.size > 100 ? 0.5 : cone.size > 60 ? 0.8 : 1.5}`);
  }

  labels(row, r, y, bar, narrow, wide, x, on, here) {
    const { lens } = this;
    const strong = r === this.now - 1 ? 700 : 400;
    if (narrow) lens.text(0, y - 3, [row.name, { text: ` ${row.what}`, style: { class: "size" } }], { size: 11.5, weight: strong });
    else {
      lens.text(0, y + bar - (bar > 12 ? 4 : 0), row.name, { size: bar > 12 ? 13 : 12, weight: strong, fill: `${row.hue}2` });
      if (row.what && bar > 14) lens.text(0, y + bar + 9, row.what, { size: 11, fill: "mute" });
    }
    if (!on || here === null) return;
    lens.text(narrow ? wide : x, narrow ? y - 3 : y + bar - (bar > 12 ? 4 : 0), this.equation(row, r, here), { size: narrow ? 11.5 : bar > 12 ? 13 : 12, weight: strong, anchor: narrow ? "end" : null, mono: true });
  }

  // "8 + 3 = 11" where two values above are added, "8 of 8, 3" where one of them is stored.
  equation(row, r, here) {
    const value = row.values[here];
    if (!row.shared) return `${row.name}[${row.first + here}] = ${full(value)}`;
    const sources = [...new Set(row.from.get(here) ?? [])];
    const [a, b] = sources.map((i) => this.rows[r - 1].values[i]);
    if (sources.length !== 2 || !row.operations.has(here) || !this.rows[r - 1].shared) return full(value);
    const [x, y] = sources[0] === here ? [a, b] : [b, a];
    return COMBINED[row.operations.get(here)](brief(x), brief(y), brief(value));
  }

  say(row, index, on) {
    const value = row.values[index];
    if (!on || value === undefined) return [[`${row.name}: not there yet.`]];
    return [[`${row.name}, element ${row.first + index}`, row.hue], [` = ${Number.isFinite(value) ? full(value, 7) : "not written"}, made of ${plural(new Set(row.from.get(index) ?? []).size, "element")} of the row above.`]];
  }
}

// Shortens a number, so that three fit beside a row.
function brief(value) {
  return full(value, 3);
}

function pickIn(row, pick) {
  if (!row) return null;
  if (row.width === 1) return 0;
  return pick < row.width ? pick : null;
}
