// What the same thread does in the other run, at the step that stands beside the one at hand.
import { beside } from "./align.js";
import { blockOf } from "./block.js";
import { el, replace, setText } from "./dom.js";
import { threadOf } from "./thread.js";
import { sentence } from "./words.js";

export class Other {
  constructor(state) {
    this.state = state;
    this.root = el("p", { class: "hint", id: "beside" });
  }

  draw(run) {
    const { state } = this;
    const other = state.runs[(run.number + 1) % state.runs.length];
    const at = beside(run, other, state.block, state.thread, state.step);
    if (!at) {
      setText(this.root, `${other.name} has no such thread, or its block is not recorded.`);
      return;
    }
    const block = blockOf(other, at.block);
    const thread = threadOf(block, at.thread);
    const said = sentence(other, block, block.watchedAt(at.step), [], thread, {
      thread: at.thread,
      step: at.step,
    });
    replace(
      this.root,
      `${at.same ? "The same" : "Next to it"} in ${other.name}, step ${block.countOf(at.step)}: ${said} `,
      el(
        "button",
        {
          type: "button",
          onclick: () =>
            state.update({ run: other.number, thread: at.thread, block: at.block, step: at.step }),
        },
        "Go there",
      ),
    );
  }
}
