// A WebAssembly module with another maximum of its memory: what happens in a worker when memory runs out.

function readLeb(bytes, at) {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    value += (byte & 127) * 2 ** shift;
    if (byte < 128) return [value, at];
  }
}

function leb(value) {
  const out = [];
  do {
    out.push((value % 128) + (value > 127 ? 128 : 0));
    value = Math.floor(value / 128);
  } while (value > 0);
  return out;
}

/** How a run with too little memory ends: a worker stopped, or the model could not even be opened. */
export const outOfMemory = ['worker-crashed', 'memory-budget'];

/** The module's bytes with a memory of `pages` of 64 KiB, which cannot grow. Section 5: count, flags (1: maximum), minimum, maximum. */
export function withLittleMemory(bytes, pages) {
  for (let at = 8; at < bytes.length; ) {
    const id = bytes[at];
    const [size, begin] = readLeb(bytes, at + 1);
    if (id === 5) {
      const section = [1, 1, ...leb(pages), ...leb(pages)];
      return Uint8Array.from([
        ...bytes.subarray(0, at),
        5,
        ...leb(section.length),
        ...section,
        ...bytes.subarray(begin + size),
      ]);
    }
    at = begin + size;
  }
  throw new Error('the module has no memory of its own');
}
