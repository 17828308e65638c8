// The layout of a run, which Python chose from the trace, or the moment of a hazard.
import { Arrays } from "./arrays.js";
import { Moment } from "./moment.js";
import { Product } from "./product.js";
import { Rows } from "./rows.js";
import { Strips } from "./strips.js";

const LAYOUTS = { product: Product, rows: Rows, strips: Strips, atomics: Strips, planes: Arrays, plain: Arrays };

export function layoutFor(state) {
  if (state.moment >= 0) return new Moment(state);
  const { story } = state.now;
  const flat = story.layout === "atomics" && state.now.arrays.some((array) => array.shape.length > 1 && array.count > 4096);
  return new (flat ? Arrays : LAYOUTS[story.layout])(state);
}
