// Which access of a launch to look at first.
import { SHARED } from "./run.js";
import { lanesOf } from "./warp.js";

// Of the line that wastes most in the whole launch (sectors' bytes that nobody asked for, and
// wavefronts that wait for banks; else the line with most of either) the access that does.
export function worstOf(run, block, first) {
  const found = [];
  for (const [number, step] of first) {
    const warp = Math.floor(block.accesses(step)[0].thread / 32);
    const lanes = lanesOf(run, block, step, warp);
    if (!lanes.length) continue;
    const here = lanes[0].place === SHARED ? block.banks(step, warp) : null;
    const far = here ? null : block.sectors(step, warp);
    const all = here ? here.wavefronts : far.sectors;
    const waste = here ? here.conflicts : all - Math.ceil(far.asked / 32);
    const line = run.lines.find((l) => isOf(run, number, l));
    const total = line ? [line.waste, line.moved] : [0, 0];
    found.push({ number, thread: 32 * warp, order: [...total, waste, all] });
  }
  return found.reduce((best, one) => {
    if (!best) return one;
    const i = one.order.findIndex((n, k) => n !== best.order[k]);
    return i >= 0 && one.order[i] > best.order[i] ? one : best;
  }, null);
}

// Whether an instruction is of a source line.
export function isOf(run, number, line) {
  const w = run.watched[number];
  return w.file >= 0 && w.source === line.line && run.sources[w.file].path === line.file;
}
