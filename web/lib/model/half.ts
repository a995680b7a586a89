// float16, which JavaScript has no array for.

/** Values of float16 bits. */
export function fromHalf(bits: Uint16Array): Float32Array {
  return Float32Array.from(bits, (half) => {
    const [sign, exponent, fraction] = [half & 0x8000 ? -1 : 1, (half >> 10) & 31, half & 1023];
    if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
    return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
  });
}
