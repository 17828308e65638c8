// The first seconds: what one thread reads for its first tile, until a key or a click stops it.
const LONGEST = 4000; // milliseconds
const [FASTEST, SLOWEST] = [60, 220];
const FRAMES = 48;

export class Opening {
  // show(step) draws a frame, done() what stays.
  constructor(state, show, done) {
    Object.assign(this, { state, show, done, timer: 0 });
    this.stop = this.stop.bind(this);
  }

  get running() {
    return this.timer !== 0;
  }

  // Whether there is anything to play.
  start() {
    this.stop();
    const steps = firstTile(this.state.blockNow, this.state.thread);
    if (steps.length < 2) return false;
    const every = Math.ceil(steps.length / FRAMES);
    const frames = steps.filter((_, i) => i % every === 0);
    this.end = frames[frames.length - 1];
    const pause = Math.max(FASTEST, Math.min(SLOWEST, LONGEST / frames.length));
    for (const name of ["keydown", "pointerdown"])
      document.addEventListener(name, this.stop, { capture: true });
    const next = (i) => {
      if (i >= frames.length) return this.stop();
      this.timer = setTimeout(() => next(i + 1), pause);
      return this.show(frames[i]);
    };
    next(0);
    return true;
  }

  stop() {
    if (!this.running) return;
    clearTimeout(this.timer);
    this.timer = 0;
    for (const name of ["keydown", "pointerdown"])
      document.removeEventListener(name, this.stop, { capture: true });
    this.done();
  }
}

// A thread's steps up to the barrier after its first computation: its first tile.
function firstTile(block, thread) {
  const kind = (step) => block.watchedAt(step)?.kind;
  const stops = block.stops("thread", thread);
  const last = block.phases[stops.find((step) => kind(step) === "value") ?? stops[0]];
  return stops.filter(
    (step) => block.phases[step] <= last && ["load", "value", "atomic"].includes(kind(step)),
  );
}
