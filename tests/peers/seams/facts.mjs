// What judge.py has to know of a run: figures of its report, and what its output is compared with.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** How much larger than that of fake-quantized weights an error may be, which have scales of float32. */
export function noiseRatioOf({ config, isNearest }, dtype) {
  // Algorithms add up what each column leaves to the next, and scales of 8 bits set them on another path.
  if (!isNearest) return 1.5;
  // Such scales stretch a range of zero points and codes of 8 bits by up to half a step at its end.
  return dtype !== 'F32' && /"(u?int8|mx)"/.test(JSON.stringify(config)) ? 1.3 : 1.05;
}

/** As our load lines say: packed zero points need dequantize, and the weights of MX and NVFP4 become bfloat16. */
export function howToLoad(folder) {
  const path = join(folder, 'config.json');
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const isPackedWithZeros = /"symmetric": ?false/.test(text) && /pack-quantized/.test(text);
  return {
    dtype: /(mxfp|nvfp)\d/.test(text) ? 'bfloat16' : 'float32',
    dequantize: isPackedWithZeros,
    roundsInputs: /"(is_)?dynamic": ?(true|"local")/.test(text),
  };
}

/**
 * Tensors that both runs quantized by one spec: a format may make others fall back to what it stores. Algorithms see the layers before, so
 * that with one of them all have to be equal or none is.
 */
export function namesOfEqualSpecs(report, other, isNearest) {
  const specs = new Map(other.tensors.map(({ name, spec }) => [name, JSON.stringify(spec)]));
  const equal = report.tensors.filter(({ name, spec }) => specs.get(name) === JSON.stringify(spec));
  return isNearest || equal.length === report.tensors.length ? equal.map(({ name }) => name) : [];
}

/** Figures of each quantized weight; JSON has no numbers that are not finite. */
export const errorsOf = (report, rename = (name) => name) =>
  Object.fromEntries(
    report.tensors.filter(({ error }) => error).map(({ name, error }) => [rename(name), inText(error)]),
  );
const inText = (error) => Object.fromEntries(Object.entries(error).map(([key, value]) => [key, String(value)]));

/** Of tensors that are cast because a config says so, not because a format or a loader needs it. */
const rulesOfConfig = ['layer-name', 'layer-glob', 'layer-type', 'global'];

/** What a report says of its run besides. */
export const saidOf = ({ tensors, files, totals }) => ({
  tensors: tensors.map(({ name, shape, action, reason }) => ({
    name,
    shape,
    isCast: action === 'cast' && rulesOfConfig.includes(reason.rule),
  })),
  files,
  totals,
});
