// The formats this page offers, in a reader's words.
import type { OutputFormat } from 'wasmquant';

export const formats: { name: OutputFormat; title: string; description: string }[] = [
  {
    name: 'compressed-tensors',
    title: 'compressed-tensors',
    description: 'Packed weights as vLLM and transformers load them.',
  },
  { name: 'quark', title: 'Quark', description: 'Packed weights as AMD Quark exports them.' },
  {
    name: 'fake-quantized',
    title: 'Fake-quantized',
    description: 'Quantized and turned back into the original dtype: any runtime loads it, the size stays.',
  },
];
