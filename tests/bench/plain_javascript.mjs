// What a page would write without this library: the same work in plain JavaScript over typed arrays, for the kernels'
// table. Prints GB/s of float32 input, the fastest of some rounds.   plain_javascript.mjs [--json] [--mib N]
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({ options: { json: { type: 'boolean' }, mib: { type: 'string' } } });
const count = Number(options.mib ?? 16) << 18;
const rounds = 7;
const x = Float32Array.from({ length: count }, () => (Math.random() + Math.random() - 1) * 0.07);
const y = new Float32Array(count);
const codes = new Int8Array(count);
const bytes = new Uint8Array(count / 2);

/** Nearest integer, ties to even: Math.round takes them up. */
function nearestEven(v) {
  const floor = Math.floor(v);
  const rest = v - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 !== 0) ? floor + 1 : floor;
}

function clamp(v, low, high) {
  return Math.min(Math.max(v, low), high);
}

function absmax(begin, end) {
  let max = 0;
  for (let i = begin; i < end; i++) max = Math.max(max, Math.abs(x[i]));
  return max;
}

function quantizeInt8() {
  const inverse = Math.fround(1 / Math.fround(0.0005));
  for (let i = 0; i < count; i++) codes[i] = clamp(nearestEven(Math.fround(x[i] * inverse)), -128, 127);
}

function fakeQuantizeInt8() {
  const scale = Math.fround(0.0005);
  const inverse = Math.fround(1 / scale);
  for (let i = 0; i < count; i++) y[i] = clamp(nearestEven(Math.fround(x[i] * inverse)), -128, 127) * scale;
}

/** Two codes of a group per byte, the first in the low nibble. */
function packGroups(group, scaleOf, codeOf) {
  for (let begin = 0; begin < count; begin += group) {
    const scale = scaleOf(absmax(begin, begin + group));
    for (let i = begin; i < begin + group; i += 2)
      bytes[i >> 1] = (codeOf(x[i], scale) & 15) | ((codeOf(x[i + 1], scale) & 15) << 4);
  }
}

const int4Scale = (max) => Math.fround(1 / Math.max(Math.fround(max / 7.5), 2 ** -23));
const int4Code = (v, inverse) => clamp(nearestEven(Math.fround(v * inverse)), -8, 7) + 8;
const mxScale = (max) => 2 ** (Math.floor(Math.log2(Math.max(max, 2 ** -126))) - 2);
const fp4Steps = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5];

function fp4Code(v, scale) {
  const magnitude = Math.abs(v / scale);
  let code = 0;
  while (code < 7 && (magnitude > fp4Steps[code] || (magnitude === fp4Steps[code] && code % 2 === 1))) code++;
  return code === 0 ? 0 : v < 0 ? code | 8 : code;
}

function fp8() {
  const scale = Math.fround(0.0002);
  const view = new DataView(new ArrayBuffer(4));
  for (let i = 0; i < count; i++) {
    const v = Math.fround(x[i] / scale);
    const magnitude = Math.min(Math.abs(v), 448);
    const sign = v < 0 ? 0x80 : 0;
    if (magnitude < 2 ** -6) {
      codes[i] = sign | nearestEven(magnitude * 512);
      continue;
    }
    view.setFloat32(0, magnitude);
    const bits = view.getUint32(0);
    codes[i] = sign | ((bits + ((bits >>> 20) & 1) + 0x7ffff - (120 << 23)) >>> 20);
  }
}

const rows = {
  absmax: () => absmax(0, count),
  quantize_int8: quantizeInt8,
  fake_quantize_int8: fakeQuantizeInt8,
  int4_g128_pack: () => packGroups(128, int4Scale, int4Code),
  int4_g32_pack: () => packGroups(32, int4Scale, int4Code),
  mxfp4_pack: () => packGroups(32, mxScale, fp4Code),
  quantize_fp8_e4m3: fp8,
};

for (const [name, run] of Object.entries(rows)) {
  let best = Infinity;
  for (let round = 0; round < rounds; round++) {
    const start = performance.now();
    run();
    best = Math.min(best, performance.now() - start);
  }
  const gbps = (count * 4) / best / 1e6;
  const line = options.json ? JSON.stringify({ name, gbps }) : `${name.padEnd(22)} ${gbps.toFixed(2).padStart(8)}`;
  process.stdout.write(`${line}\n`);
}
