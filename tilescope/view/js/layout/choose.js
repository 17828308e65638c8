// The layout of a run, which Python chose from the trace, or the moment of a hazard.
import { Accesses } from "../moment/accesses.js";
import { Arrays } from "./arrays.js";
import { Lanes } from "../moment/lanes.js";
import { Outside } from "../moment/outside.js";
import { Product } from "./product.js";
import { Race } from "../moment/race.js";
import { Rows } from "./rows.js";
import { Standstill } from "../moment/standstill.js";
import { Strips } from "./strips.js";

const LAYOUTS = { product: Product, rows: Rows, strips: Strips, atomics: Strips, planes: Arrays, plain: Arrays };

const PICTURES = { shared: Race, outside: Outside, threads: Standstill, accesses: Accesses, lanes: Lanes };

// Name of the moment's picture; "" without a moment.
export function pictureOf(state) {
  return state.runs.map((run) => run.story.moments[state.moment]).find(Boolean)?.picture ?? "";
}

export function layoutFor(state) {
  const picture = pictureOf(state);
  if (picture) return new PICTURES[picture](state);
  const { story } = state.now;
  const flat = story.layout === "atomics" && state.now.arrays.some((array) => array.shape.length > 1 && array.count > 4096);
  return new (flat ? Arrays : LAYOUTS[story.layout])(state);
}
