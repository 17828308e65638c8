// A picture of its own coordinates: cells on a canvas, frames, arrows and names in SVG above it.
import { el, replace, svg } from "./dom.js";
import { colours } from "./colours.js";

const [NAME_WIDTH, SIZE_WIDTH] = [8.8, 7.4]; // pixels of a letter of a name, and of its size

// Pixels that an array's name and size take, at most.
export function widthOfName(name, size) {
  return name.length * NAME_WIDTH + (size ? 6 + size.length * SIZE_WIDTH : 0);
}

export class Lens {
  constructor(label) {
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.over = svg("svg", { class: "over", role: "img", "aria-label": label });
    this.frames = svg("g", {});
    this.marks = svg("g", {});
    this.over.append(markers(), this.frames, this.marks);
    this.focus = el("div", { class: "spots" });
    this.root = el("div", { class: "lens" }, this.canvas, this.over, this.focus);
    this.moved = new Map();
    this.spots = [];
  }

  // Begins a picture so wide and high, scaled down to the room that there is.
  begin(wide, high, room) {
    this.scale = Math.min(1, room / wide);
    this.wide = wide;
    this.high = high;
    const [w, h] = [wide * this.scale, high * this.scale];
    const dense = Math.min(3, Math.max(1, window.devicePixelRatio || 1));
    const { canvas, over, root } = this;
    const size = [Math.ceil(w * dense), Math.ceil(h * dense)];
    if (canvas.width !== size[0] || canvas.height !== size[1]) [canvas.width, canvas.height] = size;
    root.style.width = canvas.style.width = `${w}px`;
    root.style.height = canvas.style.height = `${h}px`;
    over.setAttribute("viewBox", `0 0 ${wide} ${high}`);
    over.setAttribute("width", w);
    over.setAttribute("height", h);
    const pen = canvas.getContext("2d");
    pen.setTransform(dense * this.scale, 0, 0, dense * this.scale, 0, 0);
    pen.clearRect(0, 0, wide, high);
    this.pen = pen;
    this.parts = [];
    this.spots = [];
    return pen;
  }

  add(...parts) {
    this.parts.push(...parts);
  }

  text(x, y, text, more = {}) {
    const { size = 12, weight, anchor, fill, mono, ...rest } = more;
    const node = svg("text", {
      x, y, "font-size": size, "font-weight": weight, "text-anchor": anchor,
      class: mono ? "mono" : null, style: fill ? `fill: var(--${fill})` : null, ...rest,
    });
    for (const part of [text].flat())
      node.append(typeof part === "string" ? part : svg("tspan", part.style ?? {}, part.text));
    this.add(node);
  }

  // An array's name in its colour, and its size in grey. In less room the size is left out, and then
  // the name is shortened.
  name(x, y, name, size, hue, room = Infinity) {
    const wide = widthOfName(name, "");
    const shown = wide > room ? `${name.slice(0, Math.max(3, Math.floor(room / NAME_WIDTH) - 1))}\u2026` : name;
    const rest = size && widthOfName(name, size) <= room ? [{ text: ` ${size}`, style: { class: "size" } }] : [];
    this.text(x, y, [shown, ...rest], { size: 14, weight: 700, fill: `${hue}2`, "data-name": name });
  }

  ring(x, y, w, h, colour = "ink", wide = 2.5) {
    this.add(svg("rect", { x, y, width: w, height: h, rx: 2, class: "ring", style: `stroke: var(--${colour}); stroke-width: ${wide}` }));
  }

  shape(d, style) {
    this.add(svg("path", { d, style }));
  }

  // A shape beneath all others.
  beneath(d, style) {
    this.parts.unshift(svg("path", { d, style }));
  }

  arrow(d, hue, wide = 2) {
    this.add(svg("path", { d, class: "arrow", style: `stroke: var(--${hue}2); stroke-width: ${wide}`, "marker-end": `url(#head-${hue})` }));
  }

  // A frame that slides from where it was drawn last.
  frame(key, x, y, w, h, hue) {
    let node = this.moved.get(key);
    if (!node) {
      node = svg("g", { class: "frame" }, svg("rect", { rx: 2 }));
      this.moved.set(key, node);
      this.frames.append(node);
    }
    const rect = node.firstChild;
    rect.setAttribute("width", w);
    rect.setAttribute("height", h);
    rect.style.cssText = `stroke: var(--${hue}2)`;
    node.style.transform = `translate(${x}px, ${y}px)`;
    node.dataset.used = "1";
  }

  // A part of the picture that can be clicked and hovered: { x, y, w, h, pick(px, py), say(px, py) }.
  spot(spot) {
    this.spots.push(spot);
  }

  end() {
    replace(this.marks, this.parts);
    for (const [key, node] of this.moved) {
      if (node.dataset.used) delete node.dataset.used;
      else {
        node.remove();
        this.moved.delete(key);
      }
    }
  }

  // The topmost spot under a pointer, with the place within it.
  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.x) / this.scale, (event.clientY - box.y) / this.scale];
    for (let i = this.spots.length - 1; i >= 0; i--) {
      const s = this.spots[i];
      if (x >= s.x && y >= s.y && x < s.x + s.w && y < s.y + s.h) return { spot: s, x: x - s.x, y: y - s.y };
    }
    return null;
  }

  // A rectangle of the picture in pixels of the window.
  place(x, y) {
    const box = this.canvas.getBoundingClientRect();
    return [box.x + x * this.scale, box.y + y * this.scale];
  }

  rect(x, y, w, h, fill) {
    this.pen.fillStyle = colours()[fill] ?? fill;
    this.pen.fillRect(x, y, w, h);
  }

  border(x, y, w, h, stroke, wide = 1) {
    this.pen.strokeStyle = colours()[stroke] ?? stroke;
    this.pen.lineWidth = wide;
    this.pen.strokeRect(x, y, w, h);
  }
}

function markers() {
  return svg("defs", {}, ["a", "b", "c", "d", "e", "x"].map((hue) =>
    svg("marker", { id: `head-${hue}`, markerWidth: 8, markerHeight: 8, refX: 6, refY: 4, orient: "auto", markerUnits: "userSpaceOnUse" },
      svg("path", { d: "M0 0L8 4L0 8z", style: `fill: var(--${hue}2)` }))));
}
