// Numbers as cells, lists and the narrator show them.
function signed(text) {
  return text.replace("-", "\u2212");
}

// Two significant figures, or one where two take more than four glyphs.
export function inCell(value) {
  if (value === null || value === undefined) return "";
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "inf" : "\u2212inf";
  if (Number.isInteger(value)) return signed(String(value));
  const plain = (digits) => {
    const short = Number(value.toPrecision(digits));
    return signed(Math.abs(short) < 1 ? String(short).replace("0.", ".") : String(short));
  };
  return plain(2).length > 4 && Math.abs(value) < 1 ? plain(1) : plain(2);
}

export function fits(value) {
  return inCell(value).length <= 4;
}

// Whole numbers in full; others with three decimals, or as many significant figures as needed.
export function inList(value, whole = Number.isInteger(value)) {
  if (value === null || value === undefined) return "\u2013";
  if (!Number.isFinite(value)) return inCell(value);
  if (whole) return signed(String(Math.round(value)));
  const size = Math.abs(value);
  if (size >= 1e5 || (size && size < 5e-4)) return signed(value.toExponential(2).replace("e+", "e"));
  return signed(value.toFixed(3));
}

export function full(value, digits = 5) {
  if (value === null || value === undefined) return "\u2013";
  if (!Number.isFinite(value)) return inCell(value);
  if (Math.abs(value) >= 1e9) return signed(value.toExponential(digits - 1).replace(/\.?0*e\+/, "e"));
  if (Number.isInteger(value)) return signed(String(value));
  return signed(String(Number(value.toPrecision(digits))));
}
