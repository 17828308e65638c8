// Steps of two runs that do the same: a thread's accesses and results in the order of both.
import { blockOf } from "./block.js";
import { threadOf } from "./thread.js";

const MOST = 1500; // steps of a thread up to which they are held against each other
const known = new Map();

// The other run's block and step that stand beside a thread's step, or null if it has neither block
// nor thread.
export function beside(run, other, number, thread, step) {
  if (!other.recorded.includes(number) || thread >= other.threads) return null;
  const [here, there] = [run, other].map((r) => stepsOf(r, number, thread));
  const i = here.findLastIndex((one) => one.step <= step);
  if (i < 0 || !there.length) return { block: number, thread, step: there[0]?.step ?? 0, same: false };
  const pairs = pairsOf(run, other, number, thread, here, there);
  const j = pairs ? pairs[i] : Math.round((i * (there.length - 1)) / Math.max(1, here.length - 1));
  const same = j >= 0 && here[i].key === there[Math.max(0, j)].key;
  return { block: number, thread, step: there[Math.max(0, j)].step, same };
}

function stepsOf(run, number, thread) {
  const block = blockOf(run, number);
  const { byStep } = threadOf(block, thread);
  return block.stops("thread", thread).map((step) => {
    const item = byStep.get(step);
    if (!item) return { step, key: "" };
    const label = item.w.access ? run.element(item.place, item.offset).label : item.w.name;
    return { step, key: `${item.w.kind} ${label}` };
  });
}

// For each step of the one its partner in the other; of one without, the last before it that has one.
function pairsOf(run, other, number, thread, a, b) {
  if (a.length > MOST || b.length > MOST) return null;
  const key = `${run.number}:${other.number}:${number}:${thread}`;
  if (known.has(key)) return known.get(key);
  const wide = b.length + 1;
  const best = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      best[i * wide + j] =
        a[i].key === b[j].key
          ? best[(i + 1) * wide + j + 1] + 1
          : Math.max(best[(i + 1) * wide + j], best[i * wide + j + 1]);
  const found = [];
  let last = -1;
  for (let i = 0, j = 0; i < a.length; i++) {
    while (
      j < b.length &&
      a[i].key !== b[j].key &&
      best[i * wide + j + 1] === best[i * wide + j] &&
      best[(i + 1) * wide + j] < best[i * wide + j]
    )
      j++;
    if (j < b.length && a[i].key === b[j].key) last = j++;
    found.push(last);
  }
  known.set(key, found);
  return found;
}
