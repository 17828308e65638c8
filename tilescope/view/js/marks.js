// What to mark in a step: the tile at hand, operands, fresh slots, a hazard's lines.

// Adds the elements of global arrays that one step touches.
function touched(block, step, found) {
  const e = block.events[step];
  const { batch, column, run } = block;
  const w = block.watchedAt(step);
  const add = (place, offset, bytes) => {
    const array = run.byPlace.get(place);
    if (!array) return;
    if (!found.has(place)) found.set(place, new Set());
    for (let at = offset; at < offset + bytes; at += array.size)
      found.get(place).add(Math.floor(at / array.size));
  };
  if (w?.kind === "copy")
    for (const { from, offset, to, into, size } of block.pieces(step)) {
      add(from, offset, size);
      add(to, into, size);
    }
  if (!w?.access || batch.onlyPlace(e) < 0) return;
  batch.each(e, column, (thread, z, y, x) => {
    const offset = batch.offsetOf(e, z, y, x, column);
    add(batch.placeOf(e, z, y, x, column), offset, batch.lengthOf(e, w, z, y, x, column));
  });
}

// By place, the elements of global arrays that a block touches in a phase: its tile.
export function tileOf(block, phase) {
  block.tiles ??= new Map();
  if (!block.tiles.has(phase)) {
    const found = new Map();
    for (const s of block.stepsOf(phase)) touched(block, s, found);
    block.tiles.set(phase, found);
  }
  return block.tiles.get(phase);
}

// Slots written in the latest phase that wrote are darker than those from before.
export function freshness(block, writers) {
  let latest = -1;
  for (const writer of writers) if (writer) latest = Math.max(latest, block.phases[writer.step]);
  return Float32Array.from(writers, (writer) =>
    !writer ? -1 : block.phases[writer.step] === latest ? 0.3 : 0,
  );
}

// Where the loaded operands of a computation were loaded from.
export function operands(item) {
  if (!item || item.w.kind !== "value") return [];
  const loads = item.inputs.filter((input) => input?.item?.w.kind === "load");
  return loads.map(({ item: load, k }) => ({
    place: load.place,
    offset: load.offset + k * load.w.size,
  }));
}

// Source lines of the hazard at hand, with the numbers of its accesses.
export function lineMarks(state) {
  const marks = new Map();
  if (!state.hazard || state.hazard.run !== state.run) return marks;
  state.hazard.lines.forEach((line, i) => {
    if (line) marks.set(line, (marks.get(line) ?? "") + "\u2460\u2461\u2462"[i]);
  });
  return marks;
}
