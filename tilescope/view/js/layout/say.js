// Sentences of the narrator about one element or thread: parts of text, each with a hue or none.
import { full } from "../draw/numbers.js";
import { hueOf, hueOfVariable } from "../model/story.js";
import { before, outputValue, sharedValue } from "./values.js";
import { subscripts } from "../model/run.js";
import { plural } from "../model/format.js";

// Value, source and writer of an element of a global array or a shared variable.
export function sayElement(state, item, index) {
  const run = state.now;
  const shared = run.shared.includes(item);
  const count = shared ? Math.floor(item.bytes / item.size) : item.count;
  if (index < 0 || index >= count) return null;
  const hue = shared ? hueOfVariable(run, item) : hueOf(run, item);
  const label = item.name + subscripts(item.shape, index);
  if (shared) return saySharedElement(state, item, index, label, hue);
  const written = item.writes_total > 0;
  const value = written ? outputValue(state, item, index) : before(run, item, index);
  const parts = [[label, hue], [" = "], value === undefined ? ["not written yet"] : [full(value), hue]];
  if (item.drawn && !written)
    parts.push([`, read ${plural(Number(run.pool.data(item.reads)[index]), "time")} by the whole launch`]);
  if (item.drawn && written) {
    const owner = Number(run.pool.data(item.owner)[index]);
    if (owner >= 0) parts.push([`, written by ${run.threadName(owner % run.threads)} of ${run.blockName(Math.floor(owner / run.threads))}`]);
  }
  return [...parts, ["."]];
}

function saySharedElement(state, item, index, label, hue) {
  const run = state.now;
  const now = sharedValue(state.blockNow, item, index, state.event);
  if (!now) return [[label, hue], [" is not written yet."]];
  const parts = [[label, hue], [" = "], [full(now.value), hue]];
  if (now.write.filled) parts.push([", a constant"]);
  else if (now.write.from) {
    const from = run.element(now.write.from.place, now.write.from.offset);
    parts.push([", copied from "], [from.label, from.array ? hueOf(run, from.array) : ""]);
  }
  parts.push([`, written by ${run.threadName(now.write.thread)} in step ${state.blockNow.stepOf(now.write.step) + 1}.`]);
  return parts;
}

// A thread's running value.
export function after(state, thread, value, count) {
  const run = state.now;
  const parts = [[`The sum of ${run.threadName(thread)} is `], [full(value), "c"], [` after ${plural(count, "term")}`]];
  const waits = state.story.segments[thread >> 5].some((s) => s.hue === 9 && s.from < state.pos && s.to > state.pos);
  return [...parts, [waits ? "; it waits at the barrier." : "."]];
}

