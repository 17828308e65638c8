// Words that go with numbers, and sentences of parts.
import { el, replace } from "./dom.js";

export function count(number) {
  return Math.round(number).toLocaleString("en-US");
}

export function plural(number, word, many = `${word}s`) {
  return `${count(number)} ${number === 1 ? word : many}`;
}

// A sentence of parts: [text], [text, hue], or [text, "b"] for what is strong.
export function sentence(into, parts) {
  const key = JSON.stringify(parts);
  if (into.dataset.said === key) return;
  into.dataset.said = key;
  replace(into, parts.map(([text, hue]) => {
    if (!hue) return document.createTextNode(text);
    if (hue === "strong") return el("b", {}, text);
    return el("b", { class: `hue-${hue}` }, text);
  }));
}

export function plainText(parts) {
  return parts.map(([text]) => text).join("");
}
