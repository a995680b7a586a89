// Names of schemes as people say them, and what each is good for.
import type { Preset } from 'wasmquant';
import { isRecipePreset } from './formats';

/** `Q4_K_M`, `int4 g64`, `MXFP4`. */
export function shortName(preset: string): string {
  if (/^(i?q\d|tq\d|[b]?f(16|32)$|mxfp4_moe)/.test(preset)) return preset.toUpperCase();
  const [, dtype, group] = /^(u?int\d)_wo_(\d+)$/.exec(preset) ?? [];
  if (dtype) return `${dtype} g${group}`;
  return preset
    .replace(/_wo_per_channel$/, ' per channel')
    .replace(/^(mx|nv|amd|bfp)\w*/, (name) => name.toUpperCase())
    .replaceAll('_', ' ')
    .replace(/ WEIGHT ONLY$/, '');
}

/** llama.cpp's recipes have no description of their own that tells them apart. */
const recipeTexts: Record<string, string> = {
  f32: 'Not quantized: as precise as float32.',
  f16: 'Half of float32, without visible loss.',
  bf16: 'Half of float32, with its range.',
  q8_0: 'Nearly lossless, and fast everywhere.',
  q6_k: 'Hard to tell from the original.',
  q5_k_m: 'Close to the original; the choice when q4_k_m loses too much.',
  q5_k_s: 'A little smaller than q5_k_m.',
  q5_0: 'The older 5 bits; q5_k_m is better where it fits.',
  q5_1: 'The older 5 bits with offsets.',
  q4_k_m: 'The usual choice.',
  q4_k_s: 'A little smaller than q4_k_m.',
  q4_0: 'The older 4 bits: fast on ARM and in pages.',
  q4_1: 'The older 4 bits with offsets.',
  iq4_xs: 'The smallest 4 bits; slower on some CPUs.',
  iq4_nl: '4 bits on an uneven grid, for rows that do not fill blocks of 256.',
  q3_k_l: 'The best of the 3 bits.',
  q3_k_m: '3 bits: the loss shows.',
  q3_k_s: '3 bits: smaller, the loss shows more.',
  q2_k: '2 bits: only for large models.',
  q2_k_s: '2 bits, smaller: only for large models.',
  tq1_0: 'For models that were trained with three values.',
  tq2_0: 'For models that were trained with three values; faster.',
  mxfp4_moe: 'For mixtures of experts, such as gpt-oss.',
};

export function goodFor(preset: Preset): string {
  return (isRecipePreset(preset) && recipeTexts[preset.name]) || preset.description;
}
