// Where a result will run. The runtime decides the format, and with it the schemes.
import { formats, type Model, type OutputFormat } from 'wasmquant';

export type RuntimeId = 'llama.cpp' | 'transformers' | 'onnxruntime' | 'web' | 'quark' | 'gptq' | 'cost';

export interface Runtime {
  id: RuntimeId;
  title: string;
  /** Formats that it reads, the usual one first. */
  formats(model: Model | undefined): readonly OutputFormat[];
  /** The small text next to the title. */
  note(model: Model | undefined): string;
}

const hasGraph = (model: Model | undefined) => model !== undefined && formats.inputs[model.format].hasGraph;

function reading(id: RuntimeId, title: string, ...read: [OutputFormat, ...OutputFormat[]]): Runtime {
  const names = read.map((name) => formats.outputs[name].title).join(', ');
  return { id, title, formats: () => read, note: () => names };
}

export const runtimes: readonly Runtime[] = [
  reading('llama.cpp', 'llama.cpp, Ollama, LM Studio', 'gguf'),
  reading('transformers', 'transformers, vLLM', 'compressed-tensors'),
  {
    id: 'web',
    title: 'A web page',
    formats: (model) => (hasGraph(model) ? ['onnx'] : ['gguf']),
    note: (model) => (hasGraph(model) ? 'ONNX Runtime Web' : 'GGUF, wllama'),
  },
  reading('onnxruntime', 'ONNX Runtime, transformers.js', 'onnx'),
  reading('quark', 'AMD Quark', 'quark'),
  reading('gptq', 'gptqmodel, AutoAWQ', 'gptq', 'awq'),
  { ...reading('cost', 'Only to see the cost', 'fake-quantized'), note: () => 'same size' },
];

export const runtimeOf = (id: RuntimeId): Runtime =>
  runtimes.find((runtime) => runtime.id === id) ?? (runtimes[0] as Runtime);

/** A runtime that cannot be reached from a model: why, and what would help. */
export interface Obstacle {
  reason: string;
  help: string;
}

/** By the kinds of files; a plan may still refuse. */
export function obstacleOf(runtime: Runtime, model: Model): Obstacle | null {
  const read = runtime.formats(model);
  if (read.some((name) => formats.outputs[name].sources.includes(model.format))) return null;
  if (read.includes('onnx'))
    return {
      reason: 'needs ONNX',
      help: 'Export the model to ONNX first (optimum-cli export onnx), then open that file.',
    };
  if (hasGraph(model))
    return {
      reason: 'needs safetensors',
      help: 'An ONNX file stays ONNX. Open the safetensors files that it was exported from.',
    };
  return {
    reason: 'needs the original',
    help: `A ${formats.inputs[model.format].title} file stays one. Open the safetensors folder that it was made from.`,
  };
}

/** The runtime that a model is most often meant for. `reaches`: whether a plan for it succeeds. */
export function usualRuntime(model: Model, shards: number, reaches: (id: RuntimeId) => boolean): RuntimeId {
  if (hasGraph(model)) return 'onnxruntime';
  if (model.format === 'gguf') return 'llama.cpp';
  // One file is for one machine; shards are for servers.
  return shards < 2 && model.config !== null && reaches('llama.cpp') ? 'llama.cpp' : 'transformers';
}
