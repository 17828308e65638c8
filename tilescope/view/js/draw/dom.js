// Elements built from plain text. No text of the page is parsed as HTML.

export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  return fill(made, attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  return fill(made, attributes, children);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style" && value) made.style.cssText = value; // the policy forbids the attribute
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined)
      made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export function replace(parent, ...children) {
  parent.replaceChildren(...children.flat().filter((c) => c !== null && c !== undefined));
  return parent;
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Scrolls a box so that one of its rows is seen, and leaves the page where it is.
export function reveal(box, row) {
  const top = row.offsetTop;
  const room = box.clientHeight - row.offsetHeight;
  if (top < box.scrollTop + 20 || top > box.scrollTop + room - 20) {
    box.scrollTop = Math.max(0, top - room / 2);
  }
}
