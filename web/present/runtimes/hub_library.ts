import type { OutputFormat } from 'wasmquant';

const kOthers: Partial<Record<OutputFormat, string | null>> = {
  gguf: 'gguf',
  onnx: 'transformers.js',
  mlx: 'mlx',
  'fake-quantized': null,
};

/** What the Hub calls the library that loads a format; null: that of the source. */
export const hubLibraryOf = (format: OutputFormat): string | null => {
  const other = kOthers[format];
  return other === undefined ? 'transformers' : other;
};
