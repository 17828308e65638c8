// What there is to say of one element of a global array.
import { exact, list, times } from "./format.js";
import { readers } from "./readers.js";
import { subscripts } from "./run.js";

export function describe(run, array, i) {
  const data = (name) => run.pool.data(array[name])[i];
  const lines = [array.name + subscripts(array.shape, i)];
  if (array.after !== undefined) {
    const [before, after] = [Number(data("before")), Number(data("after"))];
    lines[0] += ` = ${exact(after, array.size === 4 ? "f32" : "f64")}`;
    if (before !== after)
      lines.push(`before the run ${exact(before, array.size === 4 ? "f32" : "f64")}`);
  }
  lines.push(`byte ${i * array.size} of ${array.name}`);
  lines.push(`read ${times(Number(data("reads")))}, written ${times(Number(data("writes")))}`);
  const owner = data("owner");
  if (owner >= 0) {
    lines.push(
      `written by ${run.threadName(owner % run.threads)} of ${run.blockName(Math.floor(owner / run.threads))}`,
    );
  }
  const who = readers(run, array, i);
  if (who.size) {
    const names = [...who]
      .slice(0, 4)
      .map(
        ([t, n]) =>
          `${run.threadName(t % run.threads)} of ${run.blockName(Math.floor(t / run.threads))}${n > 1 ? ` ${times(n)}` : ""}`,
      );
    lines.push(
      `read by ${list([...names, ...Array.from({ length: who.size - names.length })], 4)}`,
    );
    if (run.recorded.length < run.blocks)
      lines.push(`(of the ${run.recorded.length} recorded blocks)`);
  }
  return lines;
}
