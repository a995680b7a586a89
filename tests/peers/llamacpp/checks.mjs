// GGUF files of every recipe in llama.cpp: their bytes are those of llama-quantize, llama.cpp decodes them to the values that we decode, and
// llama-server computes with them what it computes with the files of llama-quantize.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CaseRow } from '../case_row.mjs';
import { casesOf, checkRuntime, Writer } from '../runtimes/runtimes.mjs';
import { checkDivergence } from './divergence_check.mjs';

const recipes = (quantizer) => quantizer.presets().flatMap(({ config }) => (config.recipe ? [config.recipe] : []));
/** llama-quantize wants a matrix of importance for it. */
const needsMatrix = 'q2_k_s';
const floats = ['f32', 'f16', 'bf16'];
/** Recipes of llama-quantize for mixtures of experts; of a dense model it quantizes what is named with --pure. */
const typeNames = { mxfp4: 'MXFP4_MOE' };

/** Map of a file's tensors: name to {dtype, bytes}. */
async function tensorsOf(quantizer, path) {
  const model = await quantizer.open(path);
  await model.close();
  const bytes = readFileSync(path);
  return new Map(
    model.tensors.map(({ name, dtype, begin, end }) => [name, { dtype, bytes: bytes.subarray(begin, end) }]),
  );
}

/** What differs between two such maps. */
function differencesOf(ours, theirs) {
  const names = new Set([...ours.keys(), ...theirs.keys()]);
  return [...names].flatMap((name) => {
    const [mine, other] = [ours.get(name), theirs.get(name)];
    if (!mine || !other) return [`only ${mine ? 'ours' : 'llama.cpp’s'} has ${name}`];
    if (mine.dtype !== other.dtype) return [`${name} is ${mine.dtype}, in llama.cpp's file ${other.dtype}`];
    return mine.bytes.equals(other.bytes) ? [] : [`${name} (${mine.dtype}) has other bytes`];
  });
}

class GgufWriter extends Writer {
  bytes = new CaseRow('GGUF: every tensor has the type and the bytes of llama-quantize');
  values = new CaseRow('GGUF: llama.cpp decodes our files to the values that we decode');
  #count = 0;

  constructor(environment, quantizer, folder) {
    super(quantizer, folder);
    this.environment = environment;
  }

  async #make(source, config, target) {
    const model = await this.quantizer.open(source);
    try {
      await this.quantizer.quantizeModel(model, config, { target });
    } finally {
      await model.close();
    }
    return target;
  }

  /** {folder: the GGUF file, reference: that of llama-quantize}; compares bytes and values on the way. */
  async write(model, { preset: recipe, pure }) {
    const path = (part) => join(this.folder, `${this.#count}-${part}.gguf`);
    this.#count++;
    const config = { dialect: 'gguf', recipe, pure };
    const { vocab_size: vocabulary } = JSON.parse(readFileSync(join(model.folder, 'config.json'), 'utf8'));
    const ours = await this.#make(model.folder, config, path('ours'));
    const plain = await this.#make(model.folder, { dialect: 'gguf', recipe: 'f32' }, path('plain'));
    const decoded = await this.#make(ours, { dialect: 'gguf', recipe: 'f32' }, path('decoded'));
    const tensors = (file) => tensorsOf(this.quantizer, file);
    const type = typeNames[recipe] ?? recipe.toUpperCase();
    this.environment.tool('llama-quantize', ...(pure ? ['--pure'] : []), plain, path('theirs'), type, '1');
    this.bytes.add(
      `${recipe}${pure ? ' --pure' : ''}`,
      differencesOf(await tensors(ours), await tensors(path('theirs'))),
    );
    this.environment.tool('llama-quantize', '--allow-requantize', ours, path('theirs-decoded'), 'F32', '1');
    this.values.add(
      `${recipe}${pure ? ' --pure' : ''}`,
      differencesOf(await tensors(decoded), await tensors(path('theirs-decoded'))),
    );
    // Kernels of llama.cpp round the inputs of blocks to 8 bits, so that its own logits with the decoded values are off by up to a third (q2_k): its own file
    // is the reference of what it computes, and `values` says what it decodes.
    return { folder: ours, reference: path('theirs'), inputs: null, vocabulary };
  }
}

/** Rows of the table of `npm run test:peers`. */
export async function checkLlamaCpp(environment, quantizer, folder, { only }) {
  const writer = new GgufWriter(environment, quantizer, folder);
  const entries = (names, rest) =>
    names.flatMap((name) =>
      casesOf({ format: 'gguf', model: 'tiny-llama', presets: [name], dtype: 'float32', isExact: true, ...rest }),
    );
  const mixtures = recipes(quantizer).filter((name) => name !== needsMatrix);
  const cases = [
    ...entries(mixtures),
    ...entries(
      [...mixtures, 'mxfp4'].filter((name) => !floats.includes(name)),
      { pure: true, how: '--pure' },
    ),
  ];
  const [row] = await checkRuntime(environment, quantizer, folder, { cases, only, writer });
  row.what = 'runtime: our GGUF files load; logits and five tokens are those of the file of llama-quantize';
  return [row, writer.bytes, writer.values, await checkDivergence(environment, quantizer, folder, only)];
}
