// Numbers and names as people read them.
import { halves } from "./data.js";

// The shortest decimal that is this value and no other of its type.
export function exact(value, type = "f32") {
  if (value === null || value === undefined) return "what was not recorded";
  if (type === "f16x2") return halves(value).map((half) => brief(half, 8)).join(", ");
  if (!Number.isFinite(value))
    return String(value).replace("Infinity", "inf").replace("-", "\u2212");
  if (type !== "f32" || Number.isInteger(value)) return minus(String(value));
  for (let digits = 1; digits < 10; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return minus(tidy(text));
  }
  return minus(String(value));
}

// A few digits, for a cell.
export function brief(value, room = 5) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "inf" : "\u2212inf";
  const whole = String(value);
  if (Number.isInteger(value) && whole.length <= room) return minus(whole);
  for (let digits = Math.min(room > 6 ? 6 : 4, room - 1); digits > 0; digits--) {
    const text = tidy(value.toPrecision(digits));
    if (text.length <= room) return minus(text);
  }
  return minus(value.toExponential(0).replace("e+", "e"));
}

function tidy(text) {
  if (text.includes("e")) return text.replace(/\.?0+e/, "e").replace("e+", "e");
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function minus(text) {
  return text.replace("-", "\u2212");
}

export function count(number) {
  return Math.round(number).toLocaleString("en-US");
}

export function plural(number, word, many = `${word}s`) {
  return `${count(number)} ${number === 1 ? word : many}`;
}

// "a, b and c"
export function inWords(names) {
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names[names.length - 1]}` : names.join("");
}

// "(x,y)": as many axes as the extents have.
export function coordinates(at, extents) {
  const axes = Math.max(1, extents.findLastIndex((extent) => extent > 1) + 1);
  return `(${at.slice(0, axes).join(",")})`;
}

export function capital(text) {
  return text[0].toUpperCase() + text.slice(1);
}

export function bytes(n) {
  if (n < 1024) return `${n} B`;
  return n < 1048576 ? `${+(n / 1024).toFixed(2)} KiB` : `${+(n / 1048576).toFixed(2)} MiB`;
}

export function list(items, most = 6) {
  const shown = items.slice(0, most).join(", ");
  return items.length > most ? `${shown} and ${count(items.length - most)} more` : shown;
}
