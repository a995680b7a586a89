// config.json of a folder output: the model's own, with the quantization_config block of the plan.

/** The keys under which tools say how weights are stored: `quantization` is MLX's, with a group size. */
function saysHowQuantized(config: Record<string, unknown> | null): boolean {
  return Boolean(config?.quantization_config) || isMlxQuantization(config?.quantization);
}

function isMlxQuantization(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'group_size' in value;
}

/**
 * `original` = the text beside the input, "" for none; `changes`: other keys that the output has. Without either the text is carried over as it is, unless it has one:
 * then the weights were decoded.
 */
export function configJson(
  original: string,
  config: Record<string, unknown> | null,
  block: Record<string, unknown> | null,
  changes: object | null = null,
): string | null {
  if (block === null && changes === null && !saysHowQuantized(config)) return original === '' ? null : original;
  // Multimodal models say what their text part is in an object of its own.
  const text = changes && config?.text_config ? { text_config: { ...Object(config.text_config), ...changes } } : {};
  const decoded = isMlxQuantization(config?.quantization) ? { quantization: undefined } : {};
  return `${JSON.stringify({ ...config, ...decoded, ...changes, ...text, quantization_config: block ?? undefined }, null, 2)}\n`;
}

/** Name of the index of sharded weights: `model-00001-of-00002.safetensors` gives `model.safetensors.index.json`. */
export function indexName(firstShard: string): string {
  const stem = /^(.*?)(-\d{5}-of-\d{5})?\.safetensors$/.exec(firstShard)?.[1] ?? 'model';
  return `${stem}.safetensors.index.json`;
}
