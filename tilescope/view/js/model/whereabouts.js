// Location of a hazard in the recorded steps: block, thread and event.
import { blockOf } from "./block.js";
import { threadOf } from "./thread.js";

const known = new Map();

// { block, step, thread } of a hazard by its number; null if no step of it was recorded.
export function whereabouts(run, number) {
  const key = `${run.number}:${number}`;
  if (!known.has(key)) known.set(key, find(run, run.hazards[number]));
  return known.get(key);
}

function find(run, hazard) {
  const [one, two] = hazard.involved;
  if (!one || !run.recorded.length) return null;
  const wanted = one.block ? run.blockNumber(one.block) : run.recorded[0];
  const number = run.recorded.includes(wanted) ? wanted : run.recorded[0];
  const block = blockOf(run, number);
  const thread = (item) => (item.thread && number === wanted ? run.threadNumber(item.thread) : null);
  const same = two?.block && one.block && run.blockNumber(two.block) === wanted;
  const pair = same ? match(block, one, two, thread(one), thread(two)) ?? match(block, one, two, null, null) : null;
  const at = pair ? readerOf(pair) : single(block, one, thread(one));
  return { block: number, step: at.step, thread: at.thread };
}

// The access that shows the hazard: the read, which gets a wrong value, or else the later one.
function readerOf([a, b]) {
  const [early, late] = a.step <= b.step ? [a, b] : [b, a];
  return early.w.kind === "load" ? early : late;
}

// Executions of an instruction that a hazard names, by one thread or by any.
function candidates(block, ptx, thread) {
  const found = [];
  for (let step = 0; step < block.events.length; step++) {
    const w = block.watchedAt(step);
    if (!w || w.ptx !== ptx) continue;
    if (!w.access) {
      const own = thread === null || block.batch.within(block.events[step], block.column, thread);
      if (own) found.push({ step, thread: thread ?? 0, w });
      continue;
    }
    for (const access of block.accesses(step))
      if (thread === null || access.thread === thread) found.push({ step, w, ...access });
  }
  return found;
}

// Two accesses to the same bytes by different threads with no barrier between.
function match(block, one, two, threadOne, threadTwo) {
  const byPlace = new Map();
  const key = (item) => `${block.phases[item.step]}:${item.place}:${Math.floor(item.offset / 16)}`;
  for (const a of candidates(block, one.ptx_line, threadOne)) {
    if (!byPlace.has(key(a))) byPlace.set(key(a), []);
    byPlace.get(key(a)).push(a);
  }
  for (const b of candidates(block, two.ptx_line, threadTwo))
    for (const a of byPlace.get(key(b)) ?? [])
      if (a.thread !== b.thread && a.offset < b.offset + b.w.width && b.offset < a.offset + a.w.width) return [a, b];
  return null;
}

// The first execution. If the instruction is no step, as a trap, the last step before it.
function single(block, one, thread) {
  const found = candidates(block, one.ptx_line, thread)[0] ?? candidates(block, one.ptx_line, null)[0];
  if (found) return found;
  const { items } = threadOf(block, thread ?? 0);
  const item = items.findLast((i) => i.w.ptx <= one.ptx_line) ?? items[0];
  return { step: item ? item.step : 0, thread: thread ?? 0 };
}
