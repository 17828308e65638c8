// What is looked at: a run, a block, a thread, a step. One place, told to whoever draws.
import { blockOf } from "./block.js";

export class State {
  constructor(runs) {
    this.runs = runs;
    this.listeners = [];
    this.view = runs.some((run) => run.hazards.some((h) => h.severity === "error"))
      ? "barriers"
      : "matrices";
    this.run = 0;
    this.block = runs[0].recorded[0] ?? 0;
    this.thread = 0;
    // Whose steps to stop at; each view has its own.
    this.modes = { matrices: "thread", steps: "thread", barriers: "all", memory: "thread" };
    this.step = 0;
    this.hazard = null;
    this.playing = false;
    this.shade = "reads";
  }

  get mode() {
    return this.modes[this.view];
  }

  get now() {
    return this.runs[this.run];
  }

  get blockNow() {
    return blockOf(this.now, this.block);
  }

  get stops() {
    const key = `${this.run}:${this.block}:${this.mode}:${this.mode === "all" ? "" : this.thread}`;
    if (this.stopsKey !== key) {
      this.stopsKey = key;
      this.stopsKnown = this.blockNow.stops(this.mode, this.thread);
    }
    return this.stopsKnown;
  }

  // Place of the step among the stops: the last that is not after it.
  get stop() {
    const stops = this.stops;
    let found = 0;
    for (let i = 0; i < stops.length && stops[i] <= this.step; i++) found = i;
    return found;
  }

  update(change) {
    const { mode, ...rest } = change;
    Object.assign(this, rest);
    if (mode) this.modes[this.view] = mode;
    const run = this.now;
    if (!run.recorded.includes(this.block)) this.block = run.recorded[0] ?? 0;
    if (this.thread >= run.threads) this.thread = 0;
    const stops = this.stops;
    if (!stops.includes(this.step)) this.step = stops[this.stop];
    for (const listener of this.listeners) listener();
  }

  go(stop) {
    const stops = this.stops;
    this.update({ step: stops[Math.max(0, Math.min(stops.length - 1, stop))] });
  }

  // The first stop of the next or the previous phase.
  goPhase(direction) {
    const { blockNow, stops } = this;
    const phase = blockNow.phases[this.step] + direction;
    const found = stops.find((step) => blockNow.phases[step] >= phase);
    this.update({ step: found === undefined ? stops[stops.length - 1] : found });
  }
}
