// config.json of a folder output: the model's own, with the quantization_config block of the plan.

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
  if (block === null && changes === null && !config?.quantization_config) return original === '' ? null : original;
  // Multimodal models say what their text part is in an object of its own.
  const text = changes && config?.text_config ? { text_config: { ...Object(config.text_config), ...changes } } : {};
  return `${JSON.stringify({ ...config, ...changes, ...text, quantization_config: block ?? undefined }, null, 2)}\n`;
}

/** Name of the index of sharded weights: `model-00001-of-00002.safetensors` gives `model.safetensors.index.json`. */
export function indexName(firstShard: string): string {
  const stem = /^(.*?)(-\d{5}-of-\d{5})?\.safetensors$/.exec(firstShard)?.[1] ?? 'model';
  return `${stem}.safetensors.index.json`;
}
