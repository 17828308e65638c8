// What a run does to memory, and what to look at: from the simulator's counters, in two sentences.
import { el } from "./dom.js";
import { count, list, plural, times } from "./format.js";

// What the kernel reads and writes, and how well.
function does(run) {
  const reads = new Map();
  for (const array of run.arrays) {
    if (!array.reads_total) continue;
    const each = array.reads_total / array.count;
    const often = Number.isInteger(each) ? times(each) : `${each.toFixed(2)}\u00d7 on average`;
    reads.set(often, [...(reads.get(often) ?? []), array.name]);
  }
  const written = run.arrays.filter((array) => array.writes_total).map((array) => array.name);
  const parts = [...reads].map(
    ([often, names]) => `each element of ${and(names)} is read ${often}`,
  );
  if (written.length) parts.push(`${and(written)} ${written.length > 1 ? "are" : "is"} written`);
  const text = parts.length ? `${parts.join("; ")}.` : "No array is read or written.";
  const { global_load: load } = run.counters;
  const share = load?.sectors ? load.distinct_bytes / (32 * load.sectors) : null;
  const moved =
    share === null
      ? ""
      : ` ${plural(load.requests, "warp's load", "loads of warps")} move ${plural(load.sectors, "sector")} of 32 bytes, ${Math.round(100 * share)}% of them asked for.`;
  return text[0].toUpperCase() + text.slice(1) + moved;
}

function and(names) {
  const shown = names.length > 4 ? [list(names, 3)] : names;
  return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}

// What to look at first: { text, label, view, line }.
function lookAt(run) {
  const worst = run.hazards.find((h) => h.severity === "error") ?? run.hazards[0];
  if (worst)
    return {
      text: `${plural(run.hazards.length, "hazard")}: ${worst.message}${worst.fix_text ? `; ${worst.fix_text}` : ""}.`,
      label: "See the hazards",
      view: "barriers",
    };
  const wasted = waste(run);
  const advised = run.prediction?.advice ?? [];
  // That a launch is small is worth a word only where nothing else is.
  const advice = advised.find((a) => a.rule !== "too few blocks") ?? (wasted ? null : advised[0]);
  const memory = { label: "See the memory system", view: "memory" };
  if (advice) {
    return { ...memory, text: `What would help most on ${run.prediction.name}: ${advice.text}.` };
  }
  if (wasted) return { ...memory, ...wasted };
  const clean = run.clean[0].toUpperCase() + run.clean.slice(1);
  const text = `${clean}${clean === "No hazards" ? "," : ";"} hardly a sector wasted, no bank conflicts.`;
  return { text, label: "Step through it", view: "steps" };
}

// The line that wastes most, or what all of them waste together.
function waste(run) {
  let total = 0;
  const found = { sectors: [0, null], banks: [0, null] };
  for (const line of run.lines) {
    for (const [key, traffic] of Object.entries(line.counters)) {
      const lost = key.startsWith("global") ? traffic.sectors - traffic.distinct_bytes / 32 : 0;
      total += lost;
      if (lost > found.sectors[0]) found.sectors = [lost, line];
      const waits = key.startsWith("shared") ? traffic.bank_conflicts : 0;
      if (waits > found.banks[0]) found.banks = [waits, line];
    }
  }
  const moved = [run.counters.global_load, run.counters.global_store, run.counters.global_atomic];
  const enough = 0.05 * moved.reduce((sum, traffic) => sum + (traffic?.sectors ?? 0), 0);
  const [sectors, line] = found.sectors;
  const [conflicts, other] = found.banks;
  const one = sectors > enough;
  const lost = one ? sectors : total > enough ? total : 0;
  if (conflicts > lost)
    return { text: `Bank conflicts of line ${other.line} cost ${plural(conflicts, "wavefront")}.` };
  const who = one ? `Line ${line.line} moves` : "All lines together move";
  return lost ? { text: `${who} ${count(lost)} sectors' worth of bytes that nobody asked for.` } : null;
}

// Both sentences, and the way there.
export function summary(run, state) {
  const look = lookAt(run);
  return el(
    "div",
    { class: "summary" },
    el("p", {}, does(run)),
    el(
      "p",
      { class: "look" },
      look.text,
      " ",
      el(
        "button",
        { type: "button", onclick: () => state.update({ run: run.number, view: look.view }) },
        look.label,
      ),
    ),
  );
}
