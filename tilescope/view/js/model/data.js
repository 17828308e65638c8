// The page's numbers: typed arrays of four axes (z, y, x, block), of which an axis that does not
// matter has one entry only. Nothing is expanded; a lane's value is found by strides.

const TYPES = [
  Float32Array,
  Float64Array,
  Int8Array,
  Int16Array,
  Int32Array,
  BigInt64Array,
  Uint8Array,
  Uint16Array,
  Uint32Array,
  BigUint64Array,
  Uint32Array,
];
export const NAMES = ["f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16x2"];

// The two numbers of a word that holds two of 16 bits.
export function halves(word) {
  return [word & 0xffff, word >>> 16].map((bits) => {
    const sign = bits >> 15 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const part = bits & 1023;
    if (exponent === 31) return part ? NaN : sign * Infinity;
    return exponent ? sign * 2 ** (exponent - 15) * (1 + part / 1024) : (sign * part) / 2 ** 24;
  });
}

class Pool {
  constructor(about, buffer) {
    const index = new Int32Array(buffer, 0, about.arrays * 6);
    const n = about.arrays;
    this.items = [];
    for (let i = 0; i < n; i++) {
      const [type, at, z, y, x, b] = [0, 1, 2, 3, 4, 5].map((k) => index[k * n + i]);
      const data = new TYPES[type](buffer, about.start + at, z * y * x * b);
      this.items.push({
        data,
        type,
        z,
        y,
        x,
        b,
        sz: z > 1 ? y * x * b : 0,
        sy: y > 1 ? x * b : 0,
        sx: x > 1 ? b : 0,
        sb: b > 1 ? 1 : 0,
      });
    }
  }

  data(i) {
    return this.items[i].data;
  }

  // Turns differences back into what they are differences of.
  sum(i) {
    const item = this.items[i];
    if (item.summed) return;
    item.summed = true;
    for (let k = 1; k < item.data.length; k++) item.data[k] += item.data[k - 1];
  }

  at(i, z, y, x, b) {
    const item = this.items[i];
    const value = item.data[z * item.sz + y * item.sy + x * item.sx + b * item.sb];
    return typeof value === "bigint" ? Number(value) : value;
  }
}

async function inflate(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

export async function load() {
  const content = JSON.parse(document.getElementById("data").textContent);
  const buffer = await inflate(document.getElementById("numbers").textContent);
  return { ...content, pool: new Pool(content.pool, buffer) };
}
