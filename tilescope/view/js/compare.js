// Two runs beside each other: what the second one changes.
import { count, times } from "./format.js";

// What the second run does to the traffic of the first.
export function headline([one, two]) {
  const [a, b] = [one, two].map((run) => run.counters.global_load.accesses);
  if (!a || !b || a === b) return `${one.name} and ${two.name} load as often from global memory.`;
  const [more, less, name, other] = a > b ? [a, b, two.name, one.name] : [b, a, one.name, two.name];
  const ratio = more / less;
  return `${name} loads ${Number.isInteger(ratio) ? times(ratio) : `${ratio.toFixed(1)}\u00d7`} less often from global memory than ${other}: ${count(less)} against ${count(more)}.`;
}
