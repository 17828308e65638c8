// Where in the recorded steps a hazard happened: the two accesses, and what the reader got.
import { blockOf } from "./block.js";
import { exact, triple } from "./format.js";
import { SHARED, spot } from "./run.js";
import { threadOf } from "./thread.js";

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
  const thread = (item) =>
    item.thread && number === wanted ? run.threadNumber(item.thread) : null;
  const same = two && two.block && one.block && run.blockNumber(two.block) === wanted;
  if (!two || !same) return single(run, hazard, block, one, thread(one), two);
  const named = match(block, one, two, thread(one), thread(two));
  const pair =
    named && astray(block, ...named)
      ? named
      : (match(block, one, two, null, null, reach(run, one, two)) ?? named);
  return pair
    ? double(run, hazard, block, pair)
    : single(run, hazard, block, one, thread(one), two);
}

// Whether the two threads that the hazard names are of one warp; its title says so, and another
// pair that is shown in their place has to be such a pair, too.
function reach(run, one, two) {
  if (!one.thread || !two.thread) return null;
  const [a, b] = [one, two].map((item) => Math.floor(run.threadNumber(item.thread) / 32));
  return a === b;
}

// Two accesses to the same bytes by different threads with no barrier between: best such that
// came the other way round than each thread for itself does them.
function match(block, one, two, threadOne, threadTwo, oneWarp = null) {
  const byPlace = new Map();
  const key = (item) => `${block.phases[item.step]}:${item.place}:${Math.floor(item.offset / 16)}`;
  for (const a of candidates(block, one.ptx_line, threadOne)) {
    if (!byPlace.has(key(a))) byPlace.set(key(a), []);
    byPlace.get(key(a)).push(a);
  }
  let found = null;
  for (const b of candidates(block, two.ptx_line, threadTwo)) {
    for (const a of byPlace.get(key(b)) ?? []) {
      if (a.thread === b.thread || !overlap(a, b)) continue;
      const together = Math.floor(a.thread / 32) === Math.floor(b.thread / 32);
      if (oneWarp !== null && together !== oneWarp) continue;
      if (astray(block, a, b)) return [a, b];
      found ??= [a, b];
    }
  }
  return found;
}

// Whether the two accesses came the other way round than in the second thread's own steps.
function astray(block, a, b) {
  const phase = block.phases[a.step];
  const own = threadOf(block, b.thread).items.filter((item) => block.phases[item.step] === phase);
  const first = own.find((item) => item.w === a.w);
  const second = own.find((item) => item.w === b.w);
  return Boolean(first && second) && first.step < second.step !== a.step < b.step;
}

function double(run, hazard, block, [a, b]) {
  const [early, late] = a.step <= b.step ? [a, b] : [b, a];
  const shown = early.w.kind === "load" ? early : late; // where a wrong value is got
  const offset = Math.max(a.offset, b.offset); // the first byte that both touch
  const { label } = run.element(a.place, offset);
  return {
    run: run.number,
    block: block.number,
    step: shown.step,
    thread: shown.thread,
    place: a.place,
    offset,
    seen: [a.step, b.step],
    threads: [a.thread, b.thread],
    title: `${hazard.message}: ${label}`,
    text: tell(run, block, early, late, offset),
    expected: expected(run, hazard, block, a, b, offset),
    between: between(run, block, early, late, offset),
    lines: hazard.involved.slice(0, 2).map((item) => item.line),
    fix: hazard.fix_text,
    diff: hazard.fix_diff,
    steps: [
      [a, hazard.involved[0]],
      [b, hazard.involved[1]],
    ].map(([at, item], i) => ({
      step: at.step,
      thread: at.thread,
      block: block.number,
      text: `${"\u2460\u2461"[i]} ${item.role} by ${run.threadName(at.thread)}, step ${block.countOf(at.step)}`,
    })),
  };
}

// What an access got or left at a byte.
function valueAt(block, access, offset) {
  const k = Math.floor((offset - access.offset) / access.w.size);
  const type = block.batch.typeOf(block.events[access.step], 0);
  return { value: access.value(Math.min(Math.max(0, k), access.values - 1)), type };
}

function shownAt(block, access, offset) {
  const { value, type } = valueAt(block, access, offset);
  return exact(value, type);
}

// What the reader of a race should have got: what is written before it, were the two in order, or
// what stood there until the write. "" where nobody reads, or what stood there is not known.
function expected(run, hazard, block, a, b, offset) {
  const read = [a, b].find((access) => access.w.kind === "load");
  const write = [a, b].find((access) => access.w.kind === "store");
  if (!read || !write) return "";
  const got = shownAt(block, read, offset);
  let right = shownAt(block, write, offset);
  if (hazard.kind === "war-race") {
    const before = block.writer(read.place, offset, write.step - 1);
    if (!before || before.value === null) return "";
    right = exact(before.value, before.type);
  }
  return right === got
    ? `In this run ${run.threadName(read.thread)} got what it should: ${got}.`
    : `${capital(run.threadName(read.thread))} should have got ${right}; it got ${got}.`;
}

// Every write to the place from the one before the two accesses to the later of them, and the two.
function between(run, block, early, late, offset) {
  const writes = block.writes.of(early.place, offset);
  const first = writes.findLastIndex((entry) => entry.step < early.step);
  const found = writes
    .filter((entry, i) => i >= first && entry.step <= late.step)
    .map(({ step, thread, value, type }) => ({
      step,
      thread,
      text: `${run.threadName(thread)} writes ${value === null ? "what was not recorded" : exact(value, type)}`,
    }));
  for (const access of [early, late])
    if (access.w.kind === "load")
      found.push({
        step: access.step,
        thread: access.thread,
        text: `${run.threadName(access.thread)} reads ${shownAt(block, access, offset)}`,
      });
  return found.sort((x, y) => x.step - y.step);
}

function tell(run, block, early, late, offset) {
  const [first, second] = [run.threadName(early.thread), run.threadName(late.thread)];
  const { label } = run.element(early.place, offset);
  const got = (access) => shownAt(block, access, offset);
  const usual = astray(block, early, late)
    ? "Each thread for itself does them the other way round, but nothing"
    : "Nothing";
  const order = `${usual} orders the two: on a GPU either may come first.`;
  if (early.w.kind === "load" && late.w.kind === "store") {
    const writer = block.writer(early.place, offset, early.step);
    const state = writer
      ? `a stale value that ${run.threadName(writer.thread)} had left there in step ${block.countOf(writer.step)}`
      : early.place === SHARED
        ? "what nobody had written yet"
        : "what stood there before the run";
    return `${capital(first)} read ${label} and got ${got(early)}: ${state}. Only afterwards ${second} wrote ${got(late)}. ${order}`;
  }
  if (early.w.kind === "store" && late.w.kind === "load") {
    const before = block.writer(early.place, offset, early.step - 1);
    const was = before
      ? ` over ${exact(before.value, before.type)}, which ${run.threadName(before.thread)} had left there in step ${block.countOf(before.step)}`
      : "";
    return `${capital(first)} wrote ${got(early)} to ${label}${was}; ${second} read ${got(late)} afterwards. ${order}`;
  }
  return `${capital(first)} wrote ${got(early)} to ${label}, ${second} wrote ${got(late)}. ${order}`;
}

function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

// The other access of a race between blocks.
function elsewhere(run, two) {
  const block = blockOf(run, run.blockNumber(two.block));
  const [found] = candidates(block, two.ptx_line, two.thread ? run.threadNumber(two.thread) : null);
  if (!found) return [];
  return [
    {
      step: found.step,
      thread: found.thread,
      block: block.number,
      text: `\u2461 ${two.role}: ${run.threadName(found.thread)} of ${run.blockName(block.number)}, step ${block.countOf(found.step)}`,
    },
  ];
}

// The last step of a thread in front of an instruction that is no step itself, such as a trap.
function before(block, ptx, thread) {
  const { items } = threadOf(block, thread ?? 0);
  const item = items.findLast((i) => i.w.ptx <= ptx) ?? items[0];
  return { step: item ? item.step : 0, thread: thread ?? 0, w: { access: false }, near: true };
}

function single(run, hazard, block, one, thread, two) {
  const found =
    candidates(block, one.ptx_line, thread)[0] ??
    candidates(block, one.ptx_line, null)[0] ??
    before(block, one.ptx_line, thread);
  const label = found.w.access ? run.element(found.place, found.offset).label : "";
  const second =
    two && two.block && run.recorded.includes(run.blockNumber(two.block))
      ? elsewhere(run, two)
      : [];
  const other =
    two && two.thread
      ? ` The other side: ${two.role} by thread ${triple(two.thread)}${two.block ? ` of block ${triple(two.block)}` : ""}, line ${two.line}.`
      : "";
  return {
    run: run.number,
    block: block.number,
    step: found.step,
    thread: found.thread,
    place: found.w.access ? found.place : -9,
    offset: found.offset ?? 0,
    seen: [found.step],
    threads: [found.thread],
    title: label ? `${hazard.message}: ${label}` : hazard.message,
    text: [
      found.near
        ? "The instruction itself is no recorded step; this is the last one before it."
        : "",
      hazard.notes[0] ? `${hazard.notes[0]}.` : "",
      other,
    ]
      .join(" ")
      .trim(),
    lines: hazard.involved.slice(0, 2).map((item) => item.line),
    fix: hazard.fix_text,
    diff: hazard.fix_diff,
    steps: [
      {
        step: found.step,
        thread: found.thread,
        block: block.number,
        text: `\u2460 ${one.role || "here"}: ${run.threadName(found.thread)}, step ${block.countOf(found.step)}`,
      },
      ...second,
    ],
  };
}
