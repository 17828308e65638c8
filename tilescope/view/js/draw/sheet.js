// A rectangle of cells on a canvas: digits where they fit, else squares whose area is the value.
import { colours, hatch } from "./colours.js";
import { fits, inCell } from "./numbers.js";

const MONO = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace';
const DIGITS = 24; // pixels of a cell from which digits fit

// A sheet: { x, y, cell, rows, cols, hue, at(row, column), digits, top }. at gives null for a cell
// that is not drawn, else { value, tone, state }: value undefined where nothing was written yet;
// tone 0 outside, 1 part of it, 2 in use now, 3 just arrived; state "pad", "wait", "old" or "wrong".
export function drawSheet(pen, sheet) {
  const { x, y, cell, rows, cols } = sheet;
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < cols; j++) {
      const what = sheet.at(i, j);
      if (what) drawCell(pen, sheet, x + j * cell, y + i * cell, what);
    }
}

function drawCell(pen, sheet, x, y, { value, tone = 0, state = "" }) {
  const c = colours();
  const { cell } = sheet;
  const hue = state === "wrong" || state === "old" ? "x" : sheet.hue;
  pen.fillStyle = tone >= 2 ? c[`${hue}1`] : tone || state === "old" || state === "wrong" ? c[`${hue}0`] : c.page;
  pen.fillRect(x, y, cell, cell);
  if (state === "pad") fillHatch(pen, "pad", x, y, cell);
  if (cell < 4 && value === undefined) return;
  pen.strokeStyle = c.line;
  pen.lineWidth = cell < 4 ? 0 : cell < 14 ? 0.6 : 1;
  if (cell >= 4) pen.strokeRect(x, y, cell, cell);
  if (value === undefined || value === null) {
    if (value === undefined) dot(pen, x + cell / 2, y + cell / 2, Math.max(0.8, Math.min(2, cell / 12)));
  } else if (sheet.digits) digits(pen, sheet, x, y, value, tone);
  else square(pen, x, y, cell, value, sheet.top, c[`${sheet.hue}2`]);
  if (state === "wait") fillHatch(pen, "wait", x, y, cell);
  if (tone === 3) {
    pen.strokeStyle = c[`${hue}2`];
    pen.lineWidth = 2;
    pen.strokeRect(x + 1, y + 1, cell - 2, cell - 2);
  }
}

function digits(pen, { cell, faint }, x, y, value, tone) {
  const c = colours();
  const text = inCell(value);
  const size = Math.max(10, Math.min(24, cell * 0.46, (cell - 4) / (0.62 * text.length)));
  pen.font = `${tone >= 2 ? 700 : 500} ${size}px ${MONO}`;
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";
  pen.fillStyle = tone || !faint ? c.ink : c.faint;
  pen.fillText(text, x + cell / 2, y + cell / 2 + size * 0.36);
}

function square(pen, x, y, cell, value, top, colour) {
  if (!Number.isFinite(value)) return;
  const share = top > 0 ? Math.min(1, Math.abs(value) / top) : 0;
  const side = Math.max(1.4, (cell - 3) * Math.sqrt(share));
  const [left, up] = [x + (cell - side) / 2, y + (cell - side) / 2];
  if (value < 0) {
    pen.strokeStyle = colour;
    pen.lineWidth = 1.2;
    pen.strokeRect(left + 0.6, up + 0.6, Math.max(0.6, side - 1.2), Math.max(0.6, side - 1.2));
  } else {
    pen.fillStyle = colour;
    pen.fillRect(left, up, side, side);
  }
}

function dot(pen, x, y, r) {
  pen.fillStyle = colours().faint;
  if (r < 1.2) return void pen.fillRect(x - r, y - r, 2 * r, 2 * r);
  pen.beginPath();
  pen.arc(x, y, r, 0, 2 * Math.PI);
  pen.fill();
}

function fillHatch(pen, kind, x, y, cell) {
  pen.save();
  pen.globalAlpha = kind === "pad" ? 0.55 : 0.8;
  pen.fillStyle = hatch(pen, kind);
  pen.fillRect(x, y, cell, cell);
  pen.restore();
}

// Whether a whole array is shown by digits: cells are large enough, and every value fits.
export function usesDigits(range, cell) {
  if (cell < DIGITS) return false;
  range.fits ??= (range.data ?? [[range.low, range.high]]).every((data) => data.subarray ? data.every((v) => fits(Number(v))) : data.every(fits));
  return range.fits;
}

export function topOf(range) {
  return Math.max(Math.abs(range.low), Math.abs(range.high)) || 1;
}

// Values as bars from the bottom; negative ones are hollow.
export function drawBars(pen, { x, y, wide, high, count, value, colour, top }) {
  const each = wide / count;
  for (let i = 0; i < count; i++) {
    const v = value(i);
    if (v === null || v === undefined || !Number.isFinite(v)) continue;
    const h = Math.max(v ? 1 : 0, (Math.min(1, Math.abs(v) / top)) * high);
    pen.fillStyle = pen.strokeStyle = colour(i);
    const [left, w] = [x + i * each, Math.max(0.7, each - (each > 3 ? 1 : 0.25))];
    if (v < 0 && w > 3) {
      pen.lineWidth = 1;
      pen.strokeRect(left + 0.5, y + high - h + 0.5, w - 1, Math.max(0.5, h - 1));
    } else {
      pen.globalAlpha = v < 0 ? 0.5 : 1;
      pen.fillRect(left, y + high - h, w, h);
      pen.globalAlpha = 1;
    }
  }
}
