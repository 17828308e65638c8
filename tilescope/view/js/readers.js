// Which threads of the recorded blocks read an element, and how often each.
export function readers(run, array, i) {
  const found = new Map();
  for (const batch of run.batches) {
    for (let e = 0; e < batch.count; e++) {
      const w = run.watched[batch.watched[e]];
      if (!w || !w.access || w.kind === "store" || !touches(run, batch, e, w, array, i)) continue;
      batch.blocks.forEach((block, column) => {
        batch.each(e, column, (thread, z, y, x) => {
          if (batch.placeOf(e, z, y, x, column) !== array.place) return;
          if (!batch.lengthOf(e, w, z, y, x, column)) return;
          const offset = batch.offsetOf(e, z, y, x, column);
          if (offset <= i * array.size && i * array.size < offset + w.width) {
            const key = block * run.threads + thread;
            found.set(key, (found.get(key) ?? 0) + 1);
          }
        });
      });
    }
  }
  return found;
}

// A quick look at an event's few distinct addresses, before asking every thread.
function touches(run, batch, e, w, array, i) {
  const place = run.pool.items[batch.place[e]].data;
  if (place.length === 1 && place[0] !== array.place) return false;
  const low = i * array.size;
  const offsets = run.pool.items[batch.offset[e]].data;
  for (let k = 0; k < offsets.length; k++)
    if (offsets[k] <= low && low < offsets[k] + w.width) return true;
  return false;
}
