// The theme's colours as the canvas needs them, read once a theme.
const NAMES = ["page", "sunk", "ink", "mute", "faint", "line", "cell", "hatch"];
let known = null;

export function forgetColours() {
  known = null;
}

export function colours() {
  if (known) return known;
  const style = getComputedStyle(document.documentElement);
  known = { hatches: new Map() };
  for (const name of NAMES) known[name] = style.getPropertyValue(`--${name}`).trim();
  for (const hue of "abcdex")
    for (const level of "012") known[hue + level] = style.getPropertyValue(`--${hue}${level}`).trim();
  return known;
}

// Lines at an angle, as a pattern: waiting, and what lies outside an array.
export function hatch(context, kind) {
  const found = colours();
  if (!found.hatches.has(kind)) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const pen = tile.getContext("2d");
    pen.strokeStyle = kind === "pad" ? found.faint : found.hatch;
    pen.lineWidth = kind === "pad" ? 0.8 : 1.6;
    for (const shift of [-6, 0, 6]) {
      pen.beginPath();
      if (kind === "pad") {
        pen.moveTo(shift, 0);
        pen.lineTo(shift + 6, 6);
      } else {
        pen.moveTo(shift, 6);
        pen.lineTo(shift + 6, 0);
      }
      pen.stroke();
    }
    found.hatches.set(kind, context.createPattern(tile, "repeat"));
  }
  return found.hatches.get(kind);
}
