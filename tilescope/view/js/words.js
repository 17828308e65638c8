// What happens in a phase and in a step, in words.
import { bytes, exact, list, plural, ranges } from "./format.js";
import { SHARED } from "./run.js";
import { constant, expression, inputLabel, inputValue, labelOf, nameOf, result } from "./thread.js";

// What a phase is about, in a few words: what it reads, writes and computes.
export function caption(block, phase) {
  block.captions ??= new Map();
  if (block.captions.has(phase)) return block.captions.get(phase);
  const reads = new Set();
  const writes = new Set();
  let computes = false;
  for (const s of block.stepsOf(phase)) {
    const w = block.watchedAt(s);
    if (!w) continue;
    if (w.kind === "value" && !w.quiet) computes = true;
    const where = w.access ? block.oneAccess(s) : null;
    if (!where) continue;
    const { name } = block.run.element(where.place, where.offset);
    if (w.kind !== "store") reads.add(name);
    if (w.kind !== "load") writes.add(name);
  }
  const parts = [];
  if (reads.size) parts.push(`reads ${list([...reads], 3)}`);
  if (computes) parts.push("computes");
  if (writes.size) parts.push(`writes ${list([...writes], 3)}`);
  const text = parts.join(", ") || "nothing but barriers";
  block.captions.set(phase, text);
  return text;
}

// A copy in bulk: how much of what goes where.
function copied(run, block, { step, thread }) {
  const pieces = [...block.pieces(step)].filter((piece) => piece.thread === thread);
  if (!pieces.length) return "A copy in bulk to another block of the cluster.";
  const [{ from, offset, to, into, size }] = pieces;
  return `T${run.threadName(thread).slice(1)} has ${bytes(pieces.length * size)} copied in bulk, from ${run.element(from, offset).label} on to ${run.element(to, into).label} on.`;
}

// What the picked thread, or another, does in a step.
export function sentence(run, block, w, here, thread, state) {
  if (!w) return "The barrier opens: all threads have come, and go on.";
  const item = thread.byStep.get(state.step);
  const me = `T${run.threadName(state.thread).slice(1)}`;
  if (w.kind === "barrier") {
    const warps = new Set();
    block.batch.each(block.events[state.step], block.column, (t) => warps.add(Math.floor(t / 32)));
    return run.warps > 1
      ? `Warp ${ranges(warps)} comes to the barrier in line ${w.source} and waits.`
      : `The threads come to the barrier in line ${w.source} and wait for each other.`;
  }
  if (w.kind === "exit") return item ? `${me} is done.` : "Threads of the block are done.";
  if (!item) {
    const one = here.length
      ? `, for instance ${run.threadName(here[0].thread)} ${run.element(here[0].place, here[0].offset).label}`
      : "";
    return `${plural(here.length || 1, "other thread")} at ${w.name}${one}; ${run.threadName(state.thread)} takes no part.`;
  }
  if (w.kind === "copy") return copied(run, block, state);
  const values = item.values
    .slice(0, w.width ? w.width / w.size : undefined)
    .map((v, k) => exact(v, item.types[k]))
    .filter((text, i, all) => item.values[i] !== null || all.indexOf(text) === i)
    .join(", ");
  if (w.kind === "load") {
    const writer = item.place === SHARED ? block.writer(SHARED, item.offset, item.step) : null;
    const from =
      item.place !== SHARED
        ? ""
        : writer
          ? `, which ${writer.thread === state.thread ? "it" : run.threadName(writer.thread)} wrote`
          : ", which nobody has written yet";
    return `${me} reads ${labelOf(run, item)} = ${values}${from}.`;
  }
  if (w.kind === "store") {
    const what = constant(item)
      ? ` (a constant: nothing was loaded for this element)`
      : ` (from ${inputLabel(run, item.inputs[0])})`;
    return `${me} writes ${labelOf(run, item)} = ${values}${what}.`;
  }
  if (w.kind === "atomic") {
    const left = item.values.at(-1);
    const now = w.operation === "phase" ? "" : `: it was ${values}, now ${exact(left, item.types.at(-1))}`;
    return `${me}: atomic ${w.operation} on ${labelOf(run, item)}, ${item.inputs.map(inputValue).join(", ")}${now}.`;
  }
  if (w.parts?.[2] > 1)
    return `${me} and its warp compute ${w.name}${values.includes("recorded") ? "" : `: ${values}`}.`;
  return `${me} computes ${nameOf(run, item)} = ${expression(run, item, false)} = ${expression(run, item, true)} = ${result(item)}.`;
}
