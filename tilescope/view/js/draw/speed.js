// What a GPU would make of the launch: predicted time, tile sizes, roofline, occupancy.
import { el } from "./dom.js";
import { Limits } from "./limits.js";

export class Speed {
  constructor(state) {
    this.state = state;
    this.limits = new Limits(state);
    this.root = el("section", { class: "part", id: "speed", "aria-labelledby": "speed-title" }, el("h2", { id: "speed-title" }, "Speed"), this.limits.root);
  }

  draw() {
    this.limits.draw(this.state.now);
  }
}
