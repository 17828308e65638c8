// Opening position of a page: inside the run, or as its address says.
import { COPY, MAKE } from "../model/story.js";

// The first use of a tile, by a thread with operands; ragged tiles open at their edge.
export function opening(state) {
  const run = state.now;
  state.thread = 0;
  state.moment = -1;
  if (opensAtMoment(run)) return openMoment(state, 0);
  const { layout } = run.story;
  if (layout === "product" && run.threads > 64) state.thread = run.by > 2 ? 2 * run.bx + 5 : 5;
  if (layout === "strips" || layout === "rows") {
    state.block = run.recorded[Math.min(1, run.recorded.length - 1)];
    if (layout === "rows") state.block = run.recorded[0];
    state.thread = Math.min(run.threads - 1, layout === "rows" ? Math.floor(run.threads * 0.58) : 70);
  }
  if (layout === "planes" || layout === "plain") {
    state.block = run.recorded[Math.floor(run.recorded.length / 2)];
    state.thread = Math.floor(run.by / 2) * run.bx + Math.floor(run.bx / 2);
  }
  if (run.story.ragged) {
    state.block = run.recorded[run.recorded.length - 1];
    state.thread = 0;
  }
  const { beats } = state;
  const made = beats.flatMap((beat, i) => (beat.kind === MAKE ? [i] : []));
  const sums = made.filter((i) => beats[i].w?.running);
  const products = made.filter((i) => beats[i].w?.shape);
  const some = products.length ? products : sums.length ? sums : made;
  const own = some.slice(0, 64).filter((i) => takesPart(state, beats[i]));
  const uses = own.length ? own : some;
  const copies = beats.flatMap((beat, i) => (beat.kind === COPY ? [i] : []));
  let at = uses[Math.min(uses.length - 1, uses.length > 16 ? 4 : 0)] ?? Math.max(0, Math.floor(beats.length / 2));
  if (layout === "strips" && uses.length > 3) at = uses[3];
  if (run.story.ragged && copies.length > 1) at = copies[copies.length - 2];
  if (layout === "rows") at = beats.length - 1;
  return state.goBeat(at + 1);
}

// Whether the picked thread is active in the last step of a beat.
function takesPart({ blockNow: block, thread }, beat) {
  return block.batch.within(block.eventOf(beat.to - 1), block.column, thread) !== null;
}

// Errors come first among the moments; warnings leave the run's own opening.
export function opensAtMoment(run) {
  const [first] = run.story.moments;
  return Boolean(first) && run.hazards[first.hazard].severity === "error";
}

// The moment of a hazard: its step and its thread.
export function openMoment(state, number) {
  const moment = state.now.story.moments[number];
  state.update({ moment: number, fixed: false, block: moment.block, thread: moment.thread, pos: moment.step + 1 });
}

// The address: block, thread and step.
export function save(state) {
  const run = state.now;
  const at = [`block=${run.blockAt(state.block).join(",")}`, `thread=${run.thread(state.thread).join(",")}`, `step=${state.pos}`];
  if (state.run) at.unshift(`run=${state.run}`);
  if (state.moment >= 0) at.push(`moment=${state.moment}${state.fixed ? ",fixed" : ""}`);
  try {
    history.replaceState(null, "", `#${at.join("&")}`);
  } catch {
    // a frame without an address
  }
}

export function restore(state) {
  const given = new Map(location.hash.slice(1).split("&").map((part) => part.split("=")));
  const triple = (text) => [...text.split(",").map(Number), 0, 0].slice(0, 3);
  if (!given.has("step")) return;
  const run = Number(given.get("run") ?? 0);
  const [moment, fixed] = (given.get("moment") ?? "-1").split(",");
  const base = fixed === "fixed" ? state.runs.find((one) => one.fixed === run) : state.runs[run];
  const known = Boolean(base?.story.moments[Number(moment)]);
  if (!base || base.hidden || (fixed && !known)) return;
  state.run = run;
  const block = state.now.blockNumber(triple(given.get("block") ?? "0"));
  const thread = state.now.threadNumber(triple(given.get("thread") ?? "0"));
  const pos = Number(given.get("step"));
  if (![block, thread, pos].every((n) => Number.isInteger(n) && n >= 0)) return;
  if (known) Object.assign(state, { moment: Number(moment), fixed: fixed === "fixed" });
  state.update({ block, thread, pos });
}
