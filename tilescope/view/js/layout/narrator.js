// The sentence about the last beat, and the values of the picked thread at its source line.
import { full, inList } from "../draw/numbers.js";
import { ADD, COPY, FETCH, STORE, WAIT, hueAt, hueOf, hueOfVariable } from "../model/story.js";
import { ofOneValue, termsOf } from "../model/sums.js";
import { expression, result, threadOf } from "../model/thread.js";
import { valueOf } from "../draw/threadpanel.js";
import { eventsOf, touched } from "./values.js";
import { plural } from "../model/format.js";

const VERBS = { fma: "Multiply and add.", mad: "Multiply and add.", add: "Add.", sub: "Subtract.", mul: "Multiply.", max: "Compare.", min: "Compare.", mma: "Multiply matrices.", wgmma: "Multiply matrices.", ex2: "Exponentiate.", div: "Divide.", shfl: "Shuffle." };

export function beatSentence(state) {
  return [...beatWords(state), ...loadsWords(state)];
}

// How many loads of the block ask for how many values in the beat, if several ask for one.
function loadsWords({ current: beat, story }) {
  if (!beat?.distinct) return [];
  const loads = story.loads[beat.to] - story.loads[beat.from];
  return loads > beat.distinct ? [[` ${plural(loads, "load")} of ${plural(beat.distinct, "value")}.`]] : [];
}

function beatWords(state) {
  const beat = state.current;
  const run = state.now;
  if (!state.story) return [["No steps of this block are on the page."]];
  if (!beat) return [["Press "], ["Play", "strong"], [`: ${run.blockName(state.block)} begins.`]];
  const { threads, all } = whoTakesPart(state, beat);
  const found = touched(run, state.blockNow, beat, all ? -1 : state.warp);
  if (beat.kind === COPY) return copySentence(run, found, threads);
  if (beat.kind === WAIT) return waitSentence(state, beat);
  if (beat.kind === STORE) return [["Write. ", "strong"], [`${threads} ${agree(threads, "store")} `], ...listed(run, found, "writes"), ["."]];
  if (beat.kind === ADD) return [["Add, atomically. ", "strong"], [`${threads} ${agree(threads, "update")} `], ...listed(run, found, "writes"), ["."]];
  const reads = listed(run, found, "reads");
  if (beat.kind === FETCH) return [["Load. ", "strong"], [`${threads} ${agree(threads, "read")} `], ...reads, ["."]];
  const verb = VERBS[beat.w?.name.split(".")[0]] ?? "Compute.";
  if (beat.w?.shape) return productSentence(run, beat, reads, found, state.warp);
  if (!reads.length) return [[`${verb} `, "strong"], [beat.w?.running ? `${threads} ${agree(threads, verb === "Compare." ? "take" : "add")} another ${verb === "Compare." ? "value" : "term"}.` : `${threads} ${agree(threads, "work")} on what is in registers.`]];
  return [[`${verb} `, "strong"], [`${threads} ${agree(threads, "use")} `], ...reads, ["."]];
}

// A product of tensor cores: the extents are in the instruction's name.
function productSentence(run, beat, reads, found, warp) {
  const [m, n, k] = beat.w.shape;
  const who = beat.w.name.startsWith("wgmma") ? `The warpgroup of warp ${warp}` : `Warp ${warp}`;
  const names = [...found].filter(([item, part]) => part.reads.size && (item.bytes ?? Infinity) > 64);
  const from = names.flatMap(([item], i) => [[i ? " and " : " from "], [item.name, run.shared.includes(item) ? hueOfVariable(run, item) : hueOf(run, item)]]);
  const where = names.length && names.every(([item]) => run.shared.includes(item)) ? " in shared memory." : ".";
  return [["Multiply matrices. ", "strong"], [`${who} multiplies ${m}\u00d7${k} by ${k}\u00d7${n} values`], ...from, [where]];
}

function agree(threads, verb) {
  return threads.startsWith("1 ") ? `${verb}s` : verb;
}

function whoTakesPart(state, beat) {
  const run = state.now;
  const block = state.blockNow;
  let [here, all] = [0, 0];
  for (const event of eventsOf(block, beat)) {
    let [mine, total] = [0, 0];
    block.batch.each(block.events[event], block.column, (thread) => {
      total++;
      if (thread >> 5 === state.warp) mine++;
    });
    [here, all] = [Math.max(here, mine), Math.max(all, total)];
  }
  if (run.warps === 1) return { threads: here === run.threads ? `All ${here} threads` : plural(here, "thread"), all: true };
  if (all === run.threads) return { threads: `All ${all} threads`, all: true };
  const threads = `${here === 32 ? "The 32 threads" : plural(here, "thread")} of warp ${state.warp}`;
  return { threads, all: false };
}

function copySentence(run, found, threads) {
  const parts = [["Load. ", "strong"], [`${threads} ${threads.startsWith("1 ") ? "copies" : "copy"} `]];
  const sources = [...found].filter(([key, part]) => !run.shared.includes(key) && part.reads.size);
  const into = [...found].filter(([key, part]) => run.shared.includes(key) && part.writes.size);
  if (!sources.length) return [["Write. ", "strong"], [`${threads} ${agree(threads, "write")} `], ...listed(run, found, "writes"), [" in shared memory."]];
  sources.forEach(([array, part], i) => parts.push([i ? " and " : ""], [`${plural(part.reads.size, noun(array))} of `], [array.name, hueOf(run, array)]));
  into.forEach(([variable], i) => parts.push([i ? " and " : " into "], [variable.name, hueOfVariable(run, variable)]));
  return [...parts, [into.length ? " in shared memory." : "."]];
}

function waitSentence(state, beat) {
  const next = state.beats[state.beat];
  const more = next?.kind === COPY ? "; what was used may be overwritten" : "";
  return [["Wait. ", "strong"], [beat.to - beat.from > 1 ? `${meeting(state, beat)} meet here${more}.` : "The barrier opens."]];
}

// Threads that a barrier lets go: all, or their number.
function meeting(state, beat) {
  const { blockNow: block, now: run } = state;
  let count = 0;
  block.batch.each(block.eventOf(beat.to - 1), block.column, () => count++);
  return count === run.threads ? `All ${count} threads` : `${count} of ${run.threads} threads`;
}

// "column 0 of As and row 0 of Bs": the elements that were read or written.
function listed(run, found, which) {
  const parts = [];
  const rank = ([item]) => (run.shared.includes(item) ? run.story.variables[run.shared.indexOf(item)] : (run.story.hues[item.place] ?? 2));
  const some = [...found].filter(([, part]) => part[which].size).sort((a, b) => rank(a) - rank(b));
  some.forEach(([item, part], i) => {
    if (i) parts.push([i === some.length - 1 ? " and " : ", "]);
    const hue = run.shared.includes(item) ? hueOfVariable(run, item) : hueOf(run, item);
    parts.push([partOf(item, part[which])], [item.name, hue]);
  });
  return parts;
}

function partOf(item, indices) {
  const columns = item.shape[item.shape.length - 1];
  const [rows, cols] = [new Set(), new Set()];
  if (item.shape.length > 1 && indices.size > 1)
    for (const i of indices) {
      rows.add(Math.floor(i / columns));
      cols.add(i % columns);
    }
  if (cols.size === 1 && rows.size > 1) return `column ${[...cols][0]} of `;
  if (rows.size === 1 && cols.size > 1) return `row ${[...rows][0]} of `;
  return `${plural(indices.size, noun(item))} of `;
}

// Elements hold values; of a variable whose element type is unknown only the bytes are known.
function noun(item) {
  return item.unit === "byte" ? "byte" : "value";
}

// Values of the picked thread at the current line, and the hue of the data that it moves.
export function lineValues(state) {
  const beat = state.current;
  if (!beat) return { value: "", hue: "ink", w: null };
  const run = state.now;
  const block = state.blockNow;
  const [first, last] = [block.steps[beat.from], block.steps[beat.to - 1]];
  const items = threadOf(block, state.thread, last).items.filter((item) => item.step >= first && item.step <= last);
  const variable = (item) => hueAt(run, item.place, item.offset);
  if (beat.kind === WAIT) return { value: `${meeting(state, beat).toLowerCase()} are here: go on`, hue: "ink", w: beat.w };
  if (!items.length) return { value: "this thread takes no part", hue: beat.kind === COPY ? "a" : "c", w: beat.w };
  if (beat.kind === COPY) {
    const store = items.filter((item) => item.w.kind === "store").pop() ?? items[items.length - 1];
    return { value: copied(run, block, items, store), hue: store.place === undefined ? "c" : variable(store), w: store.w };
  }
  if (beat.kind === STORE || beat.kind === ADD) {
    const store = items.filter((item) => item.w.kind !== "load" && item.w.access).pop();
    if (!store) return { value: "this thread stores nothing", hue: "c", w: beat.w };
    const { label } = run.element(store.place, store.offset);
    return { value: `${label} = ${full(store.values[store.values.length - 1], 6)}`, hue: "c", w: store.w };
  }
  if (beat.kind === FETCH) {
    const load = items[items.length - 1];
    const value = load.w.access ? `${run.element(load.place, load.offset).label} = ${full(load.values[0])}` : "";
    return { value, hue: load.w.access ? variable(load) : "c", w: beat.w };
  }
  return { value: beat.w?.shape ? "" : computed(run, block, state, items), hue: "c", w: beat.w };
}

function copied(run, block, items, store) {
  if (store.place === undefined) return "";
  const { label } = run.element(store.place, store.offset);
  const source = store.inputs[0]?.item ? origin(store.inputs[0]) : null;
  const value = full(store.values[0]);
  if (!source) return `${label} = ${value}: nothing was loaded`;
  return `${label} = ${run.element(source.place, source.offset).label} = ${value}`;
}

function origin(input) {
  let item = input?.item;
  while (item?.w.moves) item = item.inputs[0]?.item;
  return item?.w.kind === "load" ? item : null;
}

function computed(run, block, state, items) {
  const all = ofOneValue(termsOf(block, state.thread, threadOf(block, state.thread, Infinity).items), state.pos);
  const mine = new Set(items);
  const index = all.findLastIndex((term) => mine.has(term.item));
  if (index < 0) {
    const item = items.filter((one) => one.w.kind === "value" && !one.w.quiet && !one.w.shape).pop();
    const text = item ? `${expression(item)} = ${result(item)}` : "";
    return text.length > 90 || text.includes("%") ? "" : text; // operands are matrices, or unknown
  }
  const term = all[index];
  const before = index ? all[index - 1].sum : 0;
  const whole = [term.sum, before, ...term.operands.map(valueOf)].every((v) => v === null || Number.isInteger(v));
  const show = (v) => (v === null ? "?" : inList(v, whole));
  const signs = { max: "max", min: "min" };
  const parts = term.operands.map((o) => show(valueOf(o)));
  if (signs[term.name]) return `${signs[term.name]}(${[index ? show(before) : null, ...parts].filter(Boolean).join(", ")}) = ${show(term.sum)}`;
  // The first term may start from any register, and later ones may go on from another.
  const values = term.operands.map(valueOf);
  const last = values.reduce((product, v) => product * v, 1);
  const isFused = term.operands.length > 1 && (term.name === "fma" || term.name === "mad");
  const made = term.name === "sub" ? before - last : term.name === "mul" && !isFused ? before * last : before + last;
  const start = Math.abs(made - term.sum) <= 0.004 * Math.max(Math.abs(before), Math.abs(last), Math.abs(term.sum)) ? show(before) : "\u2026";
  if (isFused) return `${start} + ${parts.join(" \u00d7 ")} = ${show(term.sum)}`;
  if (term.operands.length > 1) return `${parts.join(term.name === "sub" ? " \u2212 " : term.name === "mul" ? " \u00d7 " : " + ")} = ${show(term.sum)}`;
  return `${start} ${term.name === "sub" ? "\u2212" : term.name === "mul" ? "\u00d7" : "+"} ${parts[0]} = ${show(term.sum)}`;
}

