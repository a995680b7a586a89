/** Formats that can be written. */
export const outputFormats = [
  // Checkpoints in safetensors files, in the order of src/checkpoint/formats.def.
  'compressed-tensors',
  'quark',
  'awq',
  'gptq',
  'fake-quantized',
  // Files of their own.
  'gguf',
  'onnx',
] as const;
/** A format that can be written. */
export type OutputFormat = (typeof outputFormats)[number];
