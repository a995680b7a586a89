/** Formats that can be written: checkpoints in safetensors files, in the order of the core's `formats.def`, and the two with files of their own. */
export const outputFormats = ['compressed-tensors', 'quark', 'awq', 'gptq', 'fake-quantized', 'gguf', 'onnx'] as const;
/** A format that can be written. */
export type OutputFormat = (typeof outputFormats)[number];
