// Where in the recorded steps a hazard happened: the two accesses, and what the reader got.
import { blockOf } from "./block.js";
import { exact, triple } from "./format.js";
import { SHARED } from "./run.js";

const known = new Map();

export function momentOf(run, number) {
  const key = `${run.number}:${number}`;
  if (!known.has(key)) known.set(key, find(run, run.hazards[number]));
  return known.get(key);
}

// What of a block's steps an involved instruction could be.
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
    for (const access of block.accesses(step)) {
      if (thread === null || access.thread === thread) found.push({ step, w, ...access });
    }
  }
  return found;
}

function overlap(a, b) {
  return a.place === b.place && a.offset < b.offset + b.w.width && b.offset < a.offset + a.w.width;
}

function find(run, hazard) {
  const [one, two] = hazard.involved;
  if (!one) return null;
  const wanted = one.block ? run.blockNumber(one.block) : run.recorded[0];
  const number = run.recorded.includes(wanted) ? wanted : run.recorded[0];
  const block = blockOf(run, number);
  const thread = (item) => (item.thread && number === wanted ? run.threadNumber(item.thread) : null);
  const same = two && two.block && one.block && run.blockNumber(two.block) === wanted;
  if (!two || !same) return single(run, hazard, block, one, thread(one), two);
  const pair = match(block, one, two, thread(one), thread(two)) ?? match(block, one, two, null, null);
  return pair ? double(run, hazard, block, pair) : single(run, hazard, block, one, thread(one), two);
}

// The first two accesses to the same bytes by different threads with no barrier between.
function match(block, one, two, threadOne, threadTwo) {
  const first = candidates(block, one.ptx_line, threadOne);
  const second = candidates(block, two.ptx_line, threadTwo);
  const byPlace = new Map();
  for (const a of first) {
    const key = `${block.phases[a.step]}:${a.place}:${Math.floor(a.offset / 16)}`;
    if (!byPlace.has(key)) byPlace.set(key, []);
    byPlace.get(key).push(a);
  }
  for (const b of second) {
    const near = byPlace.get(`${block.phases[b.step]}:${b.place}:${Math.floor(b.offset / 16)}`) ?? [];
    const a = near.find((item) => item.thread !== b.thread && overlap(item, b));
    if (a) return [a, b];
  }
  return null;
}

function double(run, hazard, block, [a, b]) {
  const [early, late] = a.step <= b.step ? [a, b] : [b, a];
  const { label } = run.element(a.place, a.offset);
  return {
    run: run.number, block: block.number, step: late.step, thread: late.thread, place: a.place, offset: a.offset,
    seen: [a.step, b.step], threads: [a.thread, b.thread], title: `${hazard.message}: ${label}`,
    text: tell(run, block, early, late, label),
    lines: hazard.involved.slice(0, 2).map((item) => item.line), cure: hazard.cure_text,
    steps: [[a, hazard.involved[0]], [b, hazard.involved[1]]].map(([at, item], i) => ({
      step: at.step, thread: at.thread, block: block.number,
      text: `${"\u2460\u2461"[i]} ${item.role} by ${run.threadName(at.thread)}, step ${block.countOf(at.step)}`,
    })),
  };
}

function tell(run, block, early, late, label) {
  const [first, second] = [run.threadName(early.thread), run.threadName(late.thread)];
  const got = (access) => exact(access.value(access.w.kind === "load" ? 0 : 0), block.batch.typeOf(block.events[access.step], 0));
  const order = `Nothing orders the two: ${first} came first in this run, and on a GPU it may be either.`;
  if (early.w.kind === "load" && late.w.kind === "store") {
    const writer = block.writer(early.place, early.offset, early.step);
    const state = writer ? `a stale value that ${run.threadName(writer.thread)} had left there in step ${block.countOf(writer.step)}` : early.place === SHARED ? "what nobody had written yet" : "what stood there before the run";
    return `${capital(first)} read ${label} and got ${got(early)}: ${state}. Only afterwards ${second} wrote ${got(late)}. ${order}`;
  }
  if (early.w.kind === "store" && late.w.kind === "load") {
    const before = block.writer(early.place, early.offset, early.step - 1);
    const was = before ? ` over ${exact(before.value, before.type)}, which ${run.threadName(before.thread)} had left there in step ${block.countOf(before.step)}` : "";
    return `${capital(first)} wrote ${got(early)} to ${label}${was}; ${second} read ${got(late)} afterwards. ${order}`;
  }
  return `${capital(first)} wrote ${got(early)} to ${label}, ${second} wrote ${got(late)}. ${order}`;
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

function single(run, hazard, block, one, thread, two) {
  const found = candidates(block, one.ptx_line, thread)[0] ?? candidates(block, one.ptx_line, null)[0];
  if (!found) return null;
  const label = found.w.access ? run.element(found.place, found.offset).label : "";
  const other = two && two.thread ? ` The other side: ${two.role} by thread ${triple(two.thread)}${two.block ? ` of block ${triple(two.block)}` : ""}, line ${two.line}.` : "";
  return {
    run: run.number, block: block.number, step: found.step, thread: found.thread,
    place: found.w.access ? found.place : -9, offset: found.offset ?? 0, seen: [found.step], threads: [found.thread],
    title: label ? `${hazard.message}: ${label}` : hazard.message, text: (hazard.notes[0] ? `${hazard.notes[0]}.` : "") + other,
    lines: hazard.involved.slice(0, 2).map((item) => item.line), cure: hazard.cure_text,
    steps: [{ step: found.step, thread: found.thread, block: block.number, text: `\u2460 ${one.role || "here"}: ${run.threadName(found.thread)}, step ${block.countOf(found.step)}` }],
  };
}
