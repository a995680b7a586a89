/** Tokens below 251 that follow each other in some ways more often than in others; another text for each seed. */
export function tokensOf(length, seed) {
  const out = [];
  let state = seed;
  for (let i = 0; i < length; ++i) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    out.push((((state >>> 20) % 24) + 5 * (out[i - 1] ?? 0)) % 251);
  }
  return out;
}
