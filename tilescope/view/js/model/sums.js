// Running value of every thread after a number of steps of a block.
const EVERY = 256; // steps between two stored states

const cache = new Map();

export function sumsAt(block, pos) {
  if (!cache.has(block)) cache.set(block, new Sums(block));
  return cache.get(block).at(pos);
}

class Sums {
  constructor(block) {
    this.block = block;
    const { threads } = block.run;
    this.kept = [{ pos: 0, value: new Float64Array(threads), count: new Int32Array(threads) }];
    this.last = null;
  }

  at(pos) {
    if (this.last?.pos === pos) return this.last;
    const from = this.last && this.last.pos < pos ? this.last : this.kept[Math.min(this.kept.length - 1, Math.floor(pos / EVERY))];
    const now = { pos: from.pos, value: from.value.slice(), count: from.count.slice() };
    const { block } = this;
    for (; now.pos < pos; now.pos++) {
      if (now.pos % EVERY === 0 && !this.kept[now.pos / EVERY])
        this.kept[now.pos / EVERY] = { pos: now.pos, value: now.value.slice(), count: now.count.slice() };
      const e = block.eventOf(now.pos);
      const w = block.watchedOf(e);
      if (!w?.running) continue;
      const { batch, column } = block;
      batch.each(e, column, (thread, z, y, x) => {
        now.value[thread] = batch.valueOf(e, 0, z, y, x, column);
        now.count[thread]++;
      });
    }
    return (this.last = now);
  }
}

// Steps at which a thread's running value grows, with its operands.
export function termsOf(block, thread, items) {
  const found = [];
  for (const item of items) {
    if (!item.w.running || item.w.shape) continue; // operands of tensor cores are fragments
    const name = item.w.name.split(".")[0];
    const product = name === "fma" || name === "mad";
    const [first, second] = item.inputs;
    const grown = (input) => through(input)?.w.running;
    const operands = product ? [first, second] : [grown(first) || !grown(second) ? second : first];
    const term = { value: item.w.running, step: block.stepOf(item.step), operands, name, sum: item.values[0], type: item.types[0], item };
    if (!product && !grown(first) && !grown(second)) {
      const some = [first, second].filter(through); // the first term adds to a constant, or adds two operands
      if (some.length) term.operands = some;
    }
    found.push(term);
  }
  return found;
}

// The terms of the running value to which a thread added last, out of several.
export function ofOneValue(terms, pos) {
  const last = terms.findLast((term) => term.step < pos) ?? terms[0];
  return last ? terms.filter((term) => term.value === last.value) : terms;
}

// The item that made an input, seen through moves.
function through(input) {
  let item = input?.item;
  while (item?.w.moves) item = item.inputs[0]?.item;
  return item;
}
