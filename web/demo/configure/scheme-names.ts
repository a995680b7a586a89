// Names of schemes as people say them.

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
