// Who reads what: every array as a heat map, and all that went into one element.
import { blockOf } from "./block.js";
import { differences, headline } from "./compare.js";
import { el, replace, setText } from "./dom.js";
import { feeding, feedingThread } from "./feeds.js";
import { count, hand, list, plural, shape, times } from "./format.js";
import { Grid, boxes, extent } from "./grid.js";
import { describe } from "./elements.js";
import { contents, label, shades } from "./heat.js";
import { cellOf, digitsWide, inOrder, product } from "./layout.js";
import { lineMarks, tileOf } from "./marks.js";
import { Opening } from "./opening.js";
import { reached } from "./reaches.js";
import { subscripts } from "./run.js";
import { Source } from "./source.js";
import { summary } from "./summary.js";
import { threadOf } from "./thread.js";
import { sentence } from "./words.js";

const SHADES = [
  ["reads", "how often it was read"],
  ["writes", "how often it was written"],
  ["owner", "which block wrote it"],
];

export class Matrices {
  constructor(state) {
    this.state = state;
    this.picked = null;
    const options = SHADES.map(([value, text]) => el("option", { value }, text));
    this.select = el(
      "select",
      { id: "shade", onchange: () => state.update({ shade: this.select.value }) },
      options,
    );
    this.legend = el("div", { class: "legend", id: "legend" });
    this.parts = state.runs.map((run) => this.section(run));
    this.film = new Opening(
      state,
      (step) => this.frame(step),
      () => this.draw(),
    );
    this.root = el(
      "div",
      {},
      state.runs.length > 1
        ? el(
            "section",
            { class: "panel", "aria-label": "Two runs" },
            el("p", { class: "headline", id: "headline" }, headline(state.runs)),
            el(
              "div",
              { class: "scroll", tabindex: 0, role: "group", "aria-label": "What differs" },
              differences(state.runs),
            ),
          )
        : null,
      el(
        "div",
        { class: "bar" },
        el("label", { for: "shade" }, "Shade each element by "),
        this.select,
        this.legend,
      ),
      el(
        "p",
        { class: "hint" },
        `${hand()} an output element to see all that went into it, in order; ${hand().toLowerCase()} an input element to see which outputs it reached. `,
        el(
          "button",
          { type: "button", id: "again", onclick: () => this.film.start() },
          "Play the first tile",
        ),
      ),
      el(
        "div",
        { class: this.parts.length > 1 ? "parts two" : "parts" },
        this.parts.map((part) => part.root),
      ),
    );
  }

  section(run) {
    const part = { run, order: new Map() };
    part.product = product(run);
    const arrays = part.product ? Object.values(part.product) : [];
    const others = inOrder(run).filter((array) => !arrays.includes(array));
    const drawn = arrays.map((array) => this.grid(part, array));
    const rest = others.map((array) => this.grid(part, array));
    part.grids = [...drawn, ...rest];
    const left = run.arrays
      .filter((array) => !array.drawn)
      .map((array) => `${array.name} (${plural(array.count, "element")})`);
    part.answer = el("p", { class: "answer", "aria-live": "polite", id: `answer${run.number}` });
    if (part.product) {
      if (this.state.runs.length === 1) part.source = new Source(this.state, "arrays");
      const [a, b, c] = drawn.map((grid) => grid.root);
      part.box = el("div", { class: "product" }, b, a, c);
    }
    const words = summary(run, this.state);
    const shown = part.source
      ? el(
          "div",
          { class: "beside" },
          part.box,
          el("div", { class: "words" }, words, part.answer, part.source.root),
        )
      : [words, part.answer, part.box];
    part.root = el(
      "section",
      { class: "panel", "aria-label": `Arrays of ${run.name}` },
      el("h2", {}, run.name, " ", el("span", { class: "note" }, shapes(run))),
      shown,
      boxes(rest),
      left.length ? el("p", { class: "hint" }, `Too large to draw: ${left.join(", ")}.`) : null,
    );
    return part;
  }

  grid(part, array) {
    const { rows, columns, strip } = extent(array.shape, array.count);
    const { product: whole } = part;
    const inside = whole && Object.values(whole).includes(array);
    const grid = new Grid({
      name: array.name,
      rows,
      columns,
      count: array.count,
      strip,
      note: `${array.shape.join("\u00d7") || "1"} ${array.type}`,
      cell: inside && ((scale) => cellOf(whole, part.box.clientWidth, scale)),
      margin: inside && ((scale) => digitsWide(whole.a, whole.b, scale)),
      describe: (i) => [...describe(part.run, array, i), ...told(part, array, i)],
      pick: (i) => this.pick(part.run, array, i),
    });
    grid.array = array;
    return grid;
  }

  pick(run, array, i) {
    const owner = run.pool.data(array.owner)[i];
    this.picked = { array: array.name, i };
    if (owner >= 0) {
      const block = Math.floor(owner / run.threads);
      if (run.recorded.includes(block))
        this.state.update({
          run: run.number,
          block,
          thread: owner % run.threads,
          step: this.state.run === run.number && this.state.block === block ? this.state.step : 0,
        });
      else this.state.update({});
    } else this.state.update({ run: run.number });
  }

  // The first time that it is seen it plays a few seconds.
  draw() {
    this.select.value = this.state.shade;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const opens = !this.opened && !calm && this.state.view === "matrices";
    this.opened = true;
    if (opens && this.film.start()) {
      this.drawLegend();
      for (const part of this.parts)
        if (part.run.number !== this.state.run)
          this.paint(part, new Map(part.grids.map((g) => [g.array.place, []])));
    } else for (const part of this.parts) this.drawPart(part);
  }

  // The thread to show in a run: the one that owns the element picked, else the one at hand.
  who(run) {
    const { picked, state } = this;
    const array = picked && run.arrays.find((a) => a.name === picked.array && a.drawn);
    if (array && picked.i < array.count) {
      const owner = run.pool.data(array.owner)[picked.i];
      if (owner >= 0)
        return {
          block: Math.floor(owner / run.threads),
          thread: owner % run.threads,
          array,
          i: picked.i,
          element: array.name + subscripts(array.shape, picked.i),
        };
      return { array, i: picked.i };
    }
    if (run.number === state.run) return { block: state.block, thread: state.thread };
    return { block: run.recorded[0], thread: 0 };
  }

  drawPart(part) {
    const { run } = part;
    const who = this.who(run);
    part.order = new Map();
    const marks = new Map(part.grids.map((g) => [g.array.place, []]));
    const known = who.block !== undefined && run.recorded.includes(who.block);
    if (known) this.footprint(run, who, marks, part);
    else if (who.array && who.block === undefined) this.asked(run, who, marks, part);
    else
      replace(
        part.answer,
        `${capital(run.threadName(who.thread))} of ${run.blockName(who.block)} wrote it; its steps are not recorded (${run.recorded.length} of ${count(run.blocks)} blocks are). This records them: `,
        el("code", {}, run.recordingOf(who.block)),
      );
    this.paint(part, marks);
    if (!part.run.number) this.drawLegend();
  }

  paint(part, marks) {
    const { run } = part;
    for (const grid of part.grids) {
      let shade = shades(run, grid.array, this.state.shade);
      const idle = this.state.shade !== "owner" && shade.most === 0;
      if (idle) shade = shades(run, grid.array, "owner"); // nothing to count: whose it is
      const text =
        grid.array.count > 4096
          ? null
          : idle
            ? contents(run, grid.array)
            : label(run, grid.array, this.state.shade);
      setText(
        grid.caption.lastElementChild,
        `${grid.about.note}${idle && grid.array.writes_total ? ", by block" : ""}`,
      );
      grid.set({ shade: shade.values, text, marks: marks.get(grid.array.place) });
    }
  }

  // What went into the picked element, or into all that a thread wrote.
  back(part, who, until) {
    const { run } = part;
    const key = `${who.element}:${who.block}:${who.thread}:${until}`;
    if (part.key !== key) {
      part.key = key;
      part.back = who.array
        ? feeding(run, who.array, who.i)
        : feedingThread(run, blockOf(run, who.block), who.thread, until);
    }
    return part.back;
  }

  footprint(run, who, marks, part, until = Infinity) {
    const block = blockOf(run, who.block);
    const back = this.back(part, who, until < Infinity ? this.film.end : Infinity);
    this.tile(block, until < Infinity ? block.phases[until] : 0, marks);
    const found = back.found.sort((a, b) => a.step - b.step);
    for (const leaf of found) {
      if (leaf.step > until) break;
      const kind = leaf.decides ? "decides" : leaf.own ? "read" : "through";
      const note = String(part.order.size + 1);
      part.order.set(`${leaf.place}:${leaf.index}`, { kind, note });
      marks.get(leaf.place)?.push({ i: leaf.index, kind, note });
    }
    if (who.array) marks.get(who.array.place).push({ i: who.i, kind: "mine" });
    else
      for (const item of threadOf(block, who.thread).items) {
        if (item.w.kind === "load" || !marks.has(item.place)) continue;
        marks
          .get(item.place)
          .push({ i: run.element(item.place, item.offset).index, kind: "mine" });
      }
    const last = threadOf(block, who.thread).items.findLast((item) => item.place >= 0);
    const line = until < Infinity ? until : (last?.step ?? 0);
    part.source?.draw(run, block.lineAt(line), lineMarks(this.state));
    if (until < Infinity) return;
    const data = found.filter((leaf) => !leaf.decides);
    const own = data.filter((leaf) => leaf.own).length;
    const others = data.length - own;
    const decided = found.length - data.length;
    const thread = `${run.threadName(who.thread)} of ${run.blockName(who.block)}`;
    const subject = who.element
      ? `${who.element} belongs to ${thread}. Into it went`
      : `Into what ${thread} wrote went`;
    const some = [];
    if (decided) some.push(`${plural(decided, "more decided", "more decided")} on what happened.`);
    if (back.ends.size)
      some.push(`The way ends at ${list([...back.ends], 3)}: what came through there is not marked.`);
    if (!data.length) {
      setText(part.answer, `${subject} nothing that was in global memory. ${some.join(" ")}`.trim());
      return;
    }
    const parts = [`${count(own)} that the thread read itself`];
    if (others) parts.push(`${count(others)} that other threads read and passed on`);
    if (block.batch.full) some.push("Only the steps recorded are counted.");
    setText(
      part.answer,
      `${subject} ${plural(data.length, "element")} of global memory: ${parts.join(", ")}. ${some.join(" ")} ${part.grids.some((g) => g.cell >= 17 * g.scale) ? "Numbers on dark give the order." : `${hand() === "Tap" ? "Tap a cell" : "Hover"} for the order.`}`.replace(/ +/g, " "),
    );
  }

  // What a block touches of each array in a phase; else in the last one before that did, or the next.
  tile(block, phase, marks) {
    const near = [...Array(block.phaseCount).keys()].sort((a, b) => (a > phase) - (b > phase) || Math.abs(a - phase) - Math.abs(b - phase));
    for (const [place, found] of marks) {
      const other = near.find((p) => tileOf(block, p).has(place));
      for (const i of tileOf(block, other ?? 0).get(place) ?? []) found.push({ i, kind: "tile" });
    }
  }

  // The film's moment: the block's tile, what has come to the thread, what it does.
  frame(step) {
    const { state } = this;
    const part = this.parts[state.run];
    const { run } = part;
    const block = state.blockNow;
    part.order = new Map();
    const marks = new Map(part.grids.map((g) => [g.array.place, []]));
    this.footprint(run, { block: block.number, thread: state.thread }, marks, part, step);
    this.paint(part, marks);
    const thread = threadOf(block, state.thread);
    setText(
      part.answer,
      sentence(run, block, block.watchedAt(step), [], thread, { ...state, step, thread: state.thread }),
    );
  }

  asked(run, { array, i }, marks, part) {
    marks.get(array.place).push({ i, kind: "read" });
    const to = reached(run, array, i);
    let outputs = 0;
    let decided = 0;
    for (const [place, cells] of to)
      for (const [k, held] of cells) {
        const went = (held & 3) > 0;
        if (went) outputs++;
        else decided++;
        marks.get(place)?.push({ i: k, kind: went ? "mine" : "decides" });
      }
    const total = Number(run.pool.data(array.reads)[i]);
    const some = run.recorded.length < run.blocks ? " of the recorded blocks" : "";
    setText(
      part.answer,
      `${array.name}${subscripts(array.shape, i)} was read ${times(total)}. It reached ${plural(outputs, "output")}${some}${outputs ? `, ringed` : ""}${decided ? `, and decided on ${plural(decided, "more", "more")}` : ""}.`,
    );
  }

  drawLegend() {
    const swatches = [0, 0.25, 0.5, 0.75, 1].map((t) => el("i", { class: `heat h${t * 4}` }));
    const most = Math.max(
      1,
      ...this.state.runs.flatMap((run) =>
        run.arrays.filter((a) => a.drawn).map((a) => shades(run, a, this.state.shade).most),
      ),
    );
    const text =
      this.state.shade === "owner"
        ? "each block has a shade of its own; the number is the block's"
        : `to ${times(most)}`;
    replace(
      this.legend,
      this.state.shade === "owner" ? null : ["0\u00d7 ", ...swatches, " "],
      text,
      el("span", { class: "key read" }, "read by the thread itself"),
      el("span", { class: "key through" }, "read by others, passed on"),
      el("span", { class: "key decides" }, "decided on it"),
      el("span", { class: "key mine" }, "output"),
      el("span", { class: "key tile" }, "the block's first tile"),
    );
  }
}

function told(part, array, i) {
  const mark = part.order.get(`${array.place}:${i}`);
  if (!mark) return [];
  const how = {
    read: "that went into it, read by its thread",
    through: "that went into it, read by another thread",
    decides: "decided on what happened",
  };
  return [`number ${mark.note}: ${how[mark.kind]}`.replace(": that", " that")];
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

function shapes(run) {
  return `${plural(run.blocks, "block")} of ${shape(run.block)} threads`;
}
