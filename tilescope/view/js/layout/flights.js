// Flights in the beats of a product: tiles to their copies, operands to the sum, the sum to C.
import { COPY, MAKE, STORE, hueOf, hueOfVariable } from "../model/story.js";
import { before, outputValue } from "./values.js";

// Start, end and hue of each flight, in pixels of the layout's lens.
export function flightsOf(view) {
  const { state, L } = view;
  const kind = view.beat?.kind;
  if (!L || L.narrow || kind === undefined) return [];
  const run = state.now;
  const phase = state.story.phaseAt(state.pos);
  const found = [];
  const fly = (x, y, size, u, v, end, text, hue) => found.push({ x, y, size, u, v, end, text, hue });
  if (kind === COPY && view.shared)
    [view.a, view.b].forEach((array, which) => {
      const w = state.story.window(phase, array.place);
      const writes = view.touched.get(view.copies[which])?.writes;
      if (!w || !writes?.size) return;
      const at = which ? L.b : L.a;
      const to = which ? L.top : L.left;
      const hue = hueOf(run, array);
      if (L.tiles) return fly(at.x + w[1] * L.g, at.y + w[0] * L.g, (w[3] - w[1]) * L.g, to.x, to.y, (which ? L.parts.above : L.parts.left).cols * L.cell, "", hue);
      for (let i = w[0]; i < w[2]; i++)
        for (let j = w[1]; j < w[3]; j++)
          fly(at.x + j * L.g, at.y + i * L.g, L.g, to.x + (j - w[1]) * L.cell, to.y + (i - w[0]) * L.cell, L.cell, before(run, array, i * array.shape[1] + j), hue);
    });
  const cell = view.elementOf(state.thread);
  if (!cell) return found;
  const own = { x: L.sum.x + (cell.column - L.t.column) * L.cell, y: L.sum.y + (cell.row - L.t.row) * L.cell };
  if (kind === MAKE && L.cell >= 24)
    for (const operand of view.operands) {
      const item = operand?.item;
      const { variable, index } = item ? run.element(item.place, item.offset) : {};
      const which = view.copies.indexOf(variable);
      if (which < 0) continue;
      const { cols } = which ? L.parts.above : L.parts.left;
      const at = which ? L.top : L.left;
      const local = index - view.bufferOf(which);
      fly(at.x + (local % cols) * L.cell, at.y + Math.floor(local / cols) * L.cell, L.cell, own.x, own.y, L.cell, item.values[operand.k], hueOfVariable(run, variable));
    }
  if (kind === STORE && !L.tiles)
    for (let i = 0; i < L.t.high; i++)
      for (let j = 0; j < L.t.wide; j++) {
        const [row, column] = [L.t.row + i, L.t.column + j];
        if (row >= view.size.m || column >= view.size.n) continue;
        fly(L.sum.x + j * L.cell, L.sum.y + i * L.cell, L.cell, L.c.x + column * L.g, L.c.y + row * L.g, L.g, outputValue(state, view.c, row * view.size.n + column), "c");
      }
  return found;
}
