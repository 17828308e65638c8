// A warp's access as the memory system takes it: 32-byte sectors, or banks of shared memory.

export function lanesOf(run, block, step, warp) {
  const w = block.watchedAt(step);
  return block
    .accesses(step)
    .filter((access) => Math.floor(access.thread / 32) === warp)
    .map((access) => ({ ...access, lane: access.thread % 32, width: w.width }));
}

// The distinct 32-byte sectors of a request, with the lanes that fall in each 4-byte word.
export function sectors(lanes) {
  const found = new Map();
  for (const { lane, place, offset, width } of lanes) {
    for (let byte = offset; byte < offset + width; byte += 4 - (((byte % 4) + 4) % 4)) {
      const sector = Math.floor(byte / 32);
      const key = `${place}:${sector}`;
      if (!found.has(key))
        found.set(key, { place, sector, words: Array.from({ length: 8 }, () => new Set()) });
      found.get(key).words[Math.floor((((byte % 32) + 32) % 32) / 4)].add(lane);
    }
  }
  return [...found.values()].sort((a, b) => a.place - b.place || a.sector - b.sector);
}

// Distinct words with their lanes, for each of the 32 banks, for each group of lanes that is served
// together. The simulator gives the size of a group.
export function banks(lanes, each) {
  const groups = new Map();
  for (const { lane, offset, width } of lanes) {
    const group = Math.floor(lane / each);
    if (!groups.has(group)) groups.set(group, Array.from({ length: 32 }, () => new Map()));
    for (let byte = offset; byte < offset + width; byte += 4 - (byte % 4)) {
      const word = Math.floor(byte / 4);
      const bank = groups.get(group)[word % 32];
      if (!bank.has(word)) bank.set(word, new Set());
      bank.get(word).add(lane);
    }
  }
  return [...groups.entries()]
    .sort(([a], [b]) => a - b)
    .map(([group, found]) => ({
      first: group * each,
      last: group * each + each - 1,
      stacks: found.map((bank) =>
        [...bank].map(([word, lanes]) => ({ word, lanes: [...lanes] })),
      ),
    }));
}
