// The kernel's source: the line of the beat with its values below it, declarations folded.
import { el, replace } from "./dom.js";

const DEEP = 12; // columns of indentation from which it is drawn by half
const LONG = 58; // columns from which a trailing comment is shortened
const SHORT = 10; // of a comment: the start of one says nothing
const COLUMNS = 38; // of code and comment, where the comment is shortened

// A path that breaks at its slashes.
const path = (text) => text.split(/(?<=\/)/).flatMap((part) => [part, el("wbr")]);
const indent = (text) => Math.max(0, text.search(/\S/));

export class Code {
  constructor(state) {
    this.state = state;
    this.title = el("h3", {});
    this.ptx = el("button", { type: "button", class: "plain", "aria-pressed": "false", onclick: () => this.togglePtx() }, "PTX");
    this.lines = el("div", { class: "code", tabindex: 0, role: "group", "aria-label": "CUDA source" });
    this.machine = el("pre", { class: "code ptx", tabindex: 0, hidden: true, "aria-label": "PTX of this line" });
    this.root = el("section", { class: "code-col", "aria-label": "Code" }, el("div", { class: "code-head" }, this.title, this.ptx), this.lines, this.machine);
    this.key = "";
  }

  // w: the instruction whose line is lit; value: what stands below it; marks: Map from a line to
  // { tag, after, cls } of a hazard; hue: of what it moves.
  draw(w, value, hue, marks = new Map()) {
    const run = this.state.now;
    const range = run.story.code;
    const file = w && w.file >= 0 ? w.file : (range?.file ?? 0);
    this.show(run, file, range, marks);
    for (const row of this.rows) {
      const now = Boolean(w) && row.number === w.source && w.file === file;
      row.item.classList.toggle("now", now);
      row.value.textContent = now ? value : "";
      row.value.hidden = !now || !value;
      if (now) {
        row.item.setAttribute("aria-current", "true");
        row.item.style.setProperty("--k", `var(--${hue === "ink" ? "ink" : `${hue}2`})`);
        this.reveal(row.item);
      } else row.item.removeAttribute("aria-current");
    }
    this.showPtx(run, w);
  }

  reveal(item) {
    const { lines } = this;
    if (lines.scrollHeight <= lines.clientHeight + 2) return;
    const top = item.offsetTop - lines.offsetTop;
    if (top < lines.scrollTop + 10 || top > lines.scrollTop + lines.clientHeight - 60)
      lines.scrollTop = Math.max(0, top - lines.clientHeight / 2);
  }

  show(run, file, range, marks) {
    const key = `${run.number}:${file}:${[...marks].map(([line, m]) => `${line}${m.tag}${m.after}`).join()}:${this.open}`;
    if (key === this.key) return;
    this.key = key;
    const source = run.sources[file];
    replace(this.title, source ? path(source.path) : "This kernel came as PTX", marks.proof ? el("small", {}, ` ${marks.proof}`) : "");
    const inside = range && [...marks.keys()].every((line) => line >= range.head && line <= range.to);
    const own = range && range.file === file && !this.open && inside;
    const [from, to] = own ? [range.from, range.to] : [1, source?.lines.length ?? 0];
    const executed = new Set(run.watched.filter((v) => v.file === file && !v.quiet).map((v) => v.source));
    this.rows = [];
    const made = [];
    const shown = (source?.lines ?? []).slice(from - 1, to);
    const narrow = Math.max(0, ...shown.map(indent)) > DEEP ? 2 : 1;
    if (own && range.folded > 0)
      made.push(el("button", { type: "button", class: "fold", onclick: () => this.unfold() }, el("i", {}, String(range.head)), el("span", {}, `\u25b8 ${range.folded} line${range.folded > 1 ? "s" : ""} of declarations`)));
    for (let number = from; number <= to; number++) {
      const text = source.lines[number - 1] ?? "";
      const mark = marks.get(number) ?? {};
      if (mark.before) made.push(added(mark.before, text));
      const value = el("span", { class: "val", hidden: true });
      const line = el("span", { class: "text", style: `padding-left: ${2 + indent(text) / narrow}ch` }, ...pieces(text), mark.tag ? el("b", { class: "tag" }, mark.tag) : "", value);
      const go = executed.has(number) ? { role: "button", tabindex: -1, onclick: () => this.go(file, number) } : {};
      const item = el("div", { class: mark.cls ?? null, "data-line": number, ...go }, el("i", {}, String(number)), line);
      this.rows.push({ number, item, value });
      made.push(item);
      if (mark.after) made.push(added(mark.after, text));
    }
    replace(this.lines, made);
  }

  unfold() {
    this.open = true;
    this.draw(this.state.current?.w ?? null, "", "ink");
    this.state.update({});
  }

  // The next beat that executes a line.
  go(file, line) {
    const { state } = this;
    const here = (beat) => {
      for (let step = beat.from; step < beat.to; step++) {
        const w = state.blockNow.watchedAt(state.blockNow.steps[step]);
        if (w && w.file === file && w.source === line) return true;
      }
      return false;
    };
    const next = state.beats.findIndex((beat, i) => i >= state.beat && here(beat));
    const found = next < 0 ? state.beats.findIndex(here) : next;
    if (found >= 0) state.goBeat(found + 1);
  }

  togglePtx() {
    this.machine.hidden = !this.machine.hidden;
    this.ptx.setAttribute("aria-pressed", String(!this.machine.hidden));
    this.showPtx(this.state.now, this.state.current?.w ?? null);
  }

  showPtx(run, w) {
    if (this.machine.hidden) return;
    const same = w ? run.ptx.filter((p) => (w.file >= 0 ? p.file === w.file && p.source === w.source : Math.abs(p.line - w.ptx) < 12)) : [];
    replace(this.machine, same.map((p) => el("div", { class: p.line === w.ptx ? "now" : null }, el("i", {}, String(p.line)), el("span", {}, p.text))));
  }
}

function pieces(text) {
  const found = text.match(/^(.*?\S)(\s*\/\/.*)$/);
  const indented = (code) => code.replace(/^\s+/, "") || " ";
  if (!found) return [indented(text)];
  const long = text.length > LONG;
  return [indented(found[1]), el("span", { class: "comment", title: long ? found[2].trim() : null }, long ? shortened(found[1], found[2]) : found[2])];
}

// As much of a comment as fits beside its code.
function shortened(code, comment) {
  const room = Math.max(0, COLUMNS - code.trim().length);
  if (comment.trim().length <= room) return comment;
  const words = comment.slice(0, room).replace(/\s+\S*$/, "");
  return `${words.trim().length > SHORT ? words : "  //"} \u2026`;
}

function added(text, beside) {
  const indent = beside.search(/\S/) < 0 ? 0 : beside.search(/\S/);
  return el("div", { class: "add" }, el("i", {}, "+"), el("span", { class: "text", style: `padding-left: ${2 + indent}ch` }, text));
}
