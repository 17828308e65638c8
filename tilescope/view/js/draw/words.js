// Sentences of parts, each in the colour of its array.
import { el, replace } from "./dom.js";

// A sentence of parts: [text], [text, hue], or [text, "strong"].
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
