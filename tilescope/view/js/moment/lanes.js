// The moment of a hazard without an array to draw: the warp's lanes with what each accesses.
import { el, replace } from "../draw/dom.js";
import { capital } from "../model/format.js";
import { DISCS, Moment } from "./moment.js";

const [LANE, ROW] = [24, 23]; // pixels of a lane's box, and of a row

export class Lanes extends Moment {
  constructor(state) {
    super(state, "The lanes of the warp at the moment of the hazard");
  }

  // The lanes are those of the run with the hazard alone.
  get hasFix() {
    return false;
  }

  draw(room) {
    const { lens, base, moment: m } = this;
    const wide = Math.min(room, 860);
    const size = room < 560 ? 11 : 12;
    const letter = size * 0.602;
    const longest = Math.max(...m.lanes.map(([, , text]) => text.length));
    const columns = Math.max(1, Math.min(4, Math.floor(wide / (LANE + 14 + longest * letter))));
    const [rows, each] = [Math.ceil(m.lanes.length / columns), wide / columns];
    const letters = Math.floor((each - LANE - 11) / letter);
    lens.begin(wide, rows * ROW + 4, room);
    m.lanes.forEach(([thread, on, text], i) => {
      const [x, y] = [Math.floor(i / rows) * each + 3, (i % rows) * ROW + 3];
      const isOwn = thread === m.thread;
      lens.rect(x, y, LANE, ROW - 4, on ? (isOwn ? "x1" : "c1") : "cell");
      lens.text(x + LANE / 2, y + 14, String(thread % 32), { size: 11, anchor: "middle", mono: true, fill: on ? (isOwn ? "on" : "ink") : "mute" });
      if (isOwn) lens.ring(x, y, LANE, ROW - 4, "x2");
      const shown = text.length > letters ? `${text.slice(0, letters - 1)}\u2026` : text;
      lens.text(x + LANE + 8, y + 14, shown, { size, mono: true, weight: isOwn ? 650 : 400 });
    });
    lens.spot({
      x: 3, y: 3, w: columns * each, h: rows * ROW,
      say: (x, y) => this.sayLane(m.lanes[Math.floor(x / each) * rows + Math.floor(y / ROW)]),
      grid: { rows, cols: columns, cell: each, tall: ROW, name: "lanes" },
    });
    lens.end();
    this.heading(`Warp ${m.thread >> 5} of ${base.blockName(m.block)}`, el("small", {}, ` at step ${m.step}`));
    this.drawPanel();
  }

  sayLane(lane) {
    if (!lane) return null;
    const [thread, on, text] = lane;
    return [[capital(this.name(thread)), "strong"], [on ? (text ? `: ${text}.` : ".") : " does not take part."]];
  }

  drawPanel() {
    const { moment: m } = this;
    replace(
      this.panel,
      m.facts.map(([heading, verb, what], k) => el("div", { class: "group" },
        el("h3", {}, `${m.facts.length > 1 ? `${DISCS[k]} ` : ""}${heading}`),
        el("small", {}, verb),
        what ? el("div", { class: "big number", style: `font-size: ${Math.min(34, 470 / what.length)}px` }, what) : null)),
      m.remark ? el("p", { class: "mute" }, m.remark) : null,
    );
  }
}
