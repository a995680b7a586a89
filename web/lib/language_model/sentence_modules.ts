// What sentence-transformers does behind an encoder: pooling of the states, and dense modules on the pooled embedding.

import { failure } from '../api/errors.js';
import type { Pooling } from '../api/language_model_types.js';
import type { TensorInfo } from '../api/types.js';
import { fromHalf } from '../model/half.js';
import type { OpenedModel } from '../model/model.js';
import type { RunResources } from '../pool/run_resources.js';

/** Of `sentenceModules` of the core. */
interface SentenceModules {
  /** Names of sentence-transformers; empty: not said. */
  pooling: string[];
  poolingFile: string;
  modules: ModuleRow[];
}

interface ModuleRow {
  path: string;
  type: string;
  /** Of Dense. */
  inputs?: number;
  outputs?: number;
  hasBias?: boolean;
  activation?: string;
  unusual?: string;
}

/** One step behind the pooling. */
interface Step {
  /** Folder of a dense module; null: scaling to length 1. */
  path: string | null;
  run(vector: Float32Array): Float32Array;
}

/** What makes an embedding of the states of a text's tokens. */
export interface EmbeddingHead {
  pooling: Pooling;
  /** Folders of the dense modules, in order. */
  dense: string[];
  /** On the pooled states: an embedding of length 1. */
  finish(pooled: Float32Array): Float32Array;
}

/** Of llama.cpp's enum llama_pooling_type. */
const ggufPoolings: Record<string, Pooling> = { '1': 'mean', '2': 'first', '3': 'last' };
const poolings: Record<string, Pooling> = { mean: 'mean', cls: 'first', lasttoken: 'last' };

const activations: Record<string, (value: number) => number> = {
  Identity: (value) => value,
  ReLU: (value) => Math.max(0, value),
  Sigmoid: (value) => 1 / (1 + Math.exp(-value)),
  Tanh: Math.tanh,
};

function ofLengthOne(vector: Float32Array): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return length === 0 ? vector : vector.map((value) => value / length);
}

const unsupported = (where: string, detail: string) => failure('format-unsupported', where, detail);

/** The key of a GGUF file that has its pooling. */
const poolingKeyOf = ({ metadata }: OpenedModel) => Object.keys(metadata).find((key) => key.endsWith('.pooling_type'));

/** Errors: format-unsupported for a pooling that is not computed here. */
function poolingOf(gguf: OpenedModel | undefined, modules: SentenceModules | null): Pooling {
  const key = gguf && poolingKeyOf(gguf);
  if (key) {
    const pooling = ggufPoolings[gguf.metadata[key] as string];
    if (pooling) return pooling;
    const known = '1 (mean), 2 (first token) and 3 (last token)';
    throw unsupported(key, `is ${gguf.metadata[key]}; computed are ${known}: give pooling`);
  }
  const names = modules?.pooling ?? [];
  const pooling = names.length === 0 ? 'mean' : names.length === 1 ? poolings[names[0] as string] : undefined;
  if (pooling) return pooling;
  const detail = `asks for ${names.join(' and ')}; computed are mean, cls and lasttoken, one of them: give pooling`;
  throw unsupported(modules?.poolingFile ?? 'pooling', detail);
}

/** Values of a small tensor. Errors: dtype-unsupported. */
async function floatsOf(model: OpenedModel, { name, dtype, begin, bytes }: TensorInfo): Promise<Float32Array> {
  const [file] = model.weights;
  const data = (await (file as NonNullable<typeof file>).read(begin, bytes)).slice().buffer;
  if (dtype === 'F32') return new Float32Array(data);
  if (dtype === 'F64') return Float32Array.from(new Float64Array(data));
  if (dtype === 'BF16') return new Float32Array(Uint32Array.from(new Uint16Array(data), (bits) => bits << 16).buffer);
  if (dtype === 'F16') return fromHalf(new Uint16Array(data));
  throw failure('dtype-unsupported', name, `is ${dtype}; weights of a dense module are F32, F64, BF16 or F16`);
}

/** Its weights. Errors: format-unsupported (a pickle), file-invalid, tensor-missing, shape-mismatch. */
async function weightsOf(resources: RunResources, model: OpenedModel, row: ModuleRow) {
  const name = `${row.path}/model.safetensors`;
  const bytes = await model.readSibling(name);
  if (!bytes) {
    const pickle = `${row.path}/pytorch_model.bin`;
    if (await model.readSibling(pickle)) {
      const detail =
        'is a pickle of PyTorch, which can run code and is not read; save the model with safe_serialization';
      throw unsupported(pickle, detail);
    }
    throw failure(
      'file-invalid',
      name,
      'is missing, or has more than 64 MiB; modules.json names this module of the model',
    );
  }
  const file = (await resources.open(new File([bytes.slice()], 'model.safetensors'))) as OpenedModel;
  try {
    const tensor = async (suffix: string, shape: number[]) => {
      const found = file.tensors.find((each) => each.name === `linear.${suffix}`);
      if (!found) throw failure('tensor-missing', `linear.${suffix}`, `is not in ${name}`);
      if (found.shape.join() !== shape.join())
        throw failure(
          'shape-mismatch',
          `${name}: ${found.name}`,
          `is [${found.shape}]; its config.json says [${shape}]`,
        );
      return floatsOf(file, found);
    };
    const { inputs = 0, outputs = 0 } = row;
    const weight = await tensor('weight', [outputs, inputs]);
    return { weight, bias: row.hasBias ? await tensor('bias', [outputs]) : new Float32Array(outputs) };
  } finally {
    await file.close();
  }
}

async function denseOf(resources: RunResources, model: OpenedModel, row: ModuleRow): Promise<Step> {
  const { path, inputs = 0, activation = '', unusual = '' } = row;
  const where = `${path}/config.json`;
  if (unusual !== '') throw unsupported(where, `has ${unusual}, and dense modules are computed without it`);
  const act = activations[activation];
  if (!act) {
    const known = Object.keys(activations).join(', ');
    throw unsupported(where, `has the activation ${activation}; computed are ${known} of torch`);
  }
  const { weight, bias } = await weightsOf(resources, model, row);
  const run = (vector: Float32Array) => {
    if (vector.length !== inputs)
      throw failure('shape-mismatch', where, `takes ${inputs} features, and the embedding has ${vector.length}`);
    return bias.map((start, output) => {
      let sum = start;
      const at = output * inputs;
      for (let i = 0; i < inputs; ++i) sum += (weight[at + i] as number) * (vector[i] as number);
      return act(sum);
    });
  };
  return { path, run };
}

/** The steps behind the pooling. Errors: format-unsupported for modules that are not computed here. */
async function stepsOf(resources: RunResources, model: OpenedModel, rows: readonly ModuleRow[]): Promise<Step[]> {
  const steps: Step[] = [];
  for (const row of rows) {
    if (row.type === 'Pooling') continue;
    else if (row.type === 'Normalize') steps.push({ path: null, run: ofLengthOne });
    else if (row.type === 'Dense') steps.push(await denseOf(resources, model, row));
    else {
      const detail = `has the module ${row.path || row.type} of class ${row.type}; computed are Pooling, Dense and Normalize`;
      throw unsupported('modules.json', detail);
    }
  }
  return steps;
}

/**
 * As the first of the models says that has such files: a GGUF file its pooling, a folder its modules. `pooling`: instead of what they
 * say. Errors: json-invalid, file-invalid (files that sentence-transformers would not read either), format-unsupported.
 */
export async function embeddingHeadOf(
  resources: RunResources,
  models: readonly (OpenedModel | undefined)[],
  pooling?: Pooling,
): Promise<EmbeddingHead> {
  const { instance } = resources;
  let modules: SentenceModules | null = null;
  let steps: Step[] = [];
  for (const model of models) {
    if (!model) continue;
    const found = instance.call<SentenceModules>(() => model.indexFor(instance).sentenceModules());
    if (found.pooling.length === 0 && found.modules.length === 0) continue;
    modules = found;
    steps = await stepsOf(resources, model, found.modules);
    break;
  }
  const gguf = models.find((model) => model && poolingKeyOf(model) !== undefined);
  return {
    pooling: pooling ?? poolingOf(gguf, modules),
    dense: steps.flatMap(({ path }) => path ?? []),
    finish: (pooled) => ofLengthOne(steps.reduce((vector, { run }) => run(vector), pooled)),
  };
}
