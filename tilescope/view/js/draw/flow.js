// The levels of CUDA above the stage, and between them how much has passed so far.
import { el, replace, svg } from "./dom.js";
import { count } from "../model/format.js";

export class Flow {
  constructor(state) {
    this.state = state;
    this.root = el("div", { class: "flow" });
  }

  // edges: where the second and the third level begin, in pixels; null where they just follow.
  draw(edges) {
    const { story, pos } = this.state;
    const block = this.state.now.blockName(this.state.block);
    const shared = this.state.now.shared.length > 0 && story.reads[story.count] > 0;
    const parts = [level("Global", " memory")];
    parts.push(arrow(story.loads[pos], story.loads[story.count], this.state.now.story.copies ? "values loaded" : "loads", block));
    if (shared) parts.push(level("Shared", " memory"), arrow(story.reads[pos], story.reads[story.count], "reads", block));
    parts.push(level("Registers", ""));
    replace(this.root, parts);
    this.root.style.gridTemplateColumns = edges ? edges : "";
    this.root.classList.toggle("two", !shared);
  }
}

function level(name, rest) {
  return el("span", { class: "level" }, el("b", {}, name), el("span", { class: "wide" }, rest));
}

function arrow(now, all, word, where) {
  const share = all ? Math.min(1, now / all) : 0;
  return el(
    "span",
    { class: "passes", title: `${count(now)} of ${count(all)} ${word} of ${where}` },
    el("b", { style: `min-width: ${count(all).length}ch` }, count(now)),
    el("span", { class: "wide" }, `${word} so far`),
    svg("svg", { class: "shaft", height: 12, preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { y: 4.5, width: "100%", height: 3, class: "track" }),
      svg("rect", { y: 4.5, width: `${100 * share}%`, height: 3, class: "filled" })),
    svg("svg", { class: "tip", width: 10, height: 12, "aria-hidden": "true" }, svg("path", { d: "M0 0l10 6l-10 6z", class: now ? "filled" : "later" })),
  );
}
