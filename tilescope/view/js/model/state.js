// What is looked at: a run, a block, a thread, and how many steps of the block are over. One place;
// all that draw listen to it.
import { blockOf } from "./block.js";
import { storyOf } from "./story.js";

export class State {
  constructor(runs) {
    this.runs = runs;
    this.listeners = [];
    this.run = 0;
    this.block = runs[0].recorded[0] ?? 0;
    this.thread = 0;
    this.pos = 0;
    this.moment = -1; // of a hazard, among the run's moments
    this.fed = null; // the output element that was picked, as { place, index }
    this.fixed = false; // whether the fixed run is shown in its place
    this.playing = false;
    this.done = new Set(); // blocks that were played to their end
  }

  get now() {
    return this.runs[this.run];
  }

  get blockNow() {
    return blockOf(this.now, this.block);
  }

  get story() {
    return storyOf(this.now, this.block);
  }

  get warp() {
    return this.thread >> 5;
  }

  get beats() {
    return this.story?.beats[this.warp] ?? [];
  }

  // Whether the recording of the block ends before the block does.
  get isCut() {
    return Boolean(this.blockNow?.batch.full);
  }

  // How many beats are over.
  get beat() {
    return this.story ? this.story.beatsDone(this.warp, this.pos) : 0;
  }

  // The beat that was just played.
  get current() {
    return this.beats[this.beat - 1] ?? null;
  }

  // The last event that has happened, as the block counts them.
  get event() {
    return this.pos ? this.blockNow.steps[this.pos - 1] : -1;
  }

  update(change) {
    if ("pos" in change) this.fed = null;
    Object.assign(this, change);
    const run = this.now;
    if (!run.recorded.includes(this.block)) this.block = run.recorded[0] ?? 0;
    if (this.thread >= run.threads) this.thread = 0;
    this.pos = Math.max(0, Math.min(this.story?.count ?? 0, this.pos));
    if (this.story && this.pos === this.story.count) this.done.add(this.block);
    for (const listener of this.listeners) listener();
  }

  // After so many beats.
  goBeat(number) {
    const { beats } = this;
    const at = Math.max(0, Math.min(beats.length, number));
    const last = at === beats.length && at > 0;
    this.update({ pos: last ? this.story.count : at ? beats[at - 1].to : 0 });
  }

  // The first beat of the next phase, or of the one before.
  goPhase(direction) {
    const { story, beats } = this;
    if (!story) return;
    const wanted = story.phaseAt(this.pos) + direction;
    const phase = story.phases[wanted];
    if (!phase) return this.goBeat(direction > 0 ? beats.length : 0);
    const first = beats.findIndex((beat) => beat.to > phase.from);
    return this.goBeat(first < 0 ? beats.length : first + 1);
  }

  // Another thread or block, after as many beats of its own.
  pick(change) {
    const { beat } = this;
    Object.assign(this, change);
    this.goBeat(Math.min(beat, this.beats.length));
  }
}
