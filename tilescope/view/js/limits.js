// What a GPU would make of the launch: roofline and occupancy.
import { el, replace } from "./dom.js";

export class Limits {
  constructor() {
    this.root = el("div", { class: "columns" });
  }

  draw() {
    replace(this.root);
  }
}
