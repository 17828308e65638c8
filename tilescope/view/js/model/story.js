// The story of a run as Python counted it: beats, phases, segments and flows of each block.
// Kinds of beats.
export const COPY = 0;
export const MAKE = 1;
export const WAIT = 2;
export const STORE = 3;
export const ADD = 4;
export const FETCH = 5;
export const HUES = ["a", "b", "c", "d", "e"];
export const HATCH = 9;
export const SHARED_ROW = -1; // place of a row of shared memory

const cache = new Map();

export function storyOf(run, number) {
  const key = `${run.number}:${number}`;
  if (!cache.has(key)) {
    const raw = run.story.blocks.find((block) => block.block === number);
    cache.set(key, raw ? new BlockStory(run, raw) : null);
  }
  return cache.get(key);
}

class BlockStory {
  constructor(run, raw) {
    this.run = run;
    this.count = raw.count;
    this.releases = raw.releases;
    this.windows = raw.windows;
    this.rows = raw.rows ?? [];
    this.phases = raw.phases.map(([from, to, number, distinct, sectors, name]) => ({ from, to, number, distinct, sectors, name }));
    this.phaseCount = Math.max(0, ...this.phases.map((phase) => phase.number));
    this.loads = run.pool.data(raw.loads);
    this.reads = run.pool.data(raw.reads);
    const rows = (number, width) => {
      const data = run.pool.data(number);
      return Array.from({ length: data.length / width }, (_, i) => data.subarray(i * width, (i + 1) * width));
    };
    this.beats = Array.from({ length: run.warps }, () => []);
    const distinct = run.pool.data(raw.distinct);
    rows(raw.beats, 5).forEach(([warp, kind, from, to, watched], i) => {
      this.beats[warp].push({ warp, kind, from, to, w: run.watched[watched], distinct: distinct[i] });
    });
    this.products = Array.from({ length: run.warps }, () => []);
    for (const [warp, step] of rows(raw.products, 2)) this.products[warp].push(step);
    this.segments = Array.from({ length: run.warps }, () => []);
    for (const [warp, hue, from, to] of rows(raw.segments, 4)) this.segments[warp].push({ hue, from, to });
  }

  // The phase in which a step lies, as a place in `phases`.
  phaseAt(pos) {
    const found = this.phases.findIndex((phase) => pos <= phase.to);
    return found < 0 ? this.phases.length - 1 : found;
  }

  // How many of a warp's beats are over once so many steps are.
  beatsDone(warp, pos) {
    const beats = this.beats[warp];
    let i = 0;
    while (i < beats.length && beats[i].to <= pos) i++;
    return i;
  }

  // What a block touches of a global array in a phase: [row, column, past row, past column].
  window(phase, place, writes = 0) {
    const found = this.windows.find((w) => w[0] === phase && w[1] === place && w[2] === writes);
    return found ? found.slice(3) : null;
  }

  // The window of all phases together.
  whole(place, writes = 0) {
    const own = this.windows.filter((w) => w[1] === place && w[2] === writes);
    if (!own.length) return null;
    const edge = (k, pick) => pick(...own.map((w) => w[k]));
    return [edge(3, Math.min), edge(4, Math.min), edge(5, Math.max), edge(6, Math.max)];
  }
}

// The hue of a global array, or of a shared variable, as a letter of the theme.
export function hueOf(run, array) {
  return HUES[run.story.hues[array.place] ?? 2];
}

export function hueOfVariable(run, variable) {
  return HUES[run.story.variables[run.shared.indexOf(variable)] ?? 2];
}

export function hueAt(run, place, offset) {
  const { array, variable } = run.element(place, offset);
  return array ? hueOf(run, array) : variable ? hueOfVariable(run, variable) : "c";
}
