// What the reader of a snippet has already: lines that are put before it, by the name in its `given` comment. The folder has
// what docs.mjs puts there, and with `quantized` my-model-int4.

import { join } from 'node:path';
import { root } from '../setup/command.mjs';

const ids = (rows) => `const { readFileSync: readTokens } = await import('node:fs');
const tokenBytes = readTokens('tokens.safetensors');
const tokenStart = 8 + Number(tokenBytes.readBigUInt64LE(0));
const ids = Int32Array.from({ length: ${rows} * 256 }, (_, i) => tokenBytes.readInt32LE(tokenStart + 4 * i));`;

export const given = {
  quantizer: `import { createQuantizer } from 'wasmquant';
const quantizer = await createQuantizer({ threads: 2 });
quantizer[Symbol.asyncDispose] ??= () => {};`,
  model: `const model = await quantizer.open('./my-model');`,
  'my-model-int4': '',
  quantized: `const quantized = await quantizer.open('./my-model-int4');`,
  ids: ids(16),
  tokens: `${ids(8)}
const tokens = { data: ids, shape: [8, 256] };`,
  config: `const config = {
  global_quant_config: {
    weight: { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true },
    input_tensors: { dtype: 'int8', qscheme: 'per_tensor', symmetric: true },
  },
  exclude: ['lm_head'],
};`,
  file: `const { readFileSync: readFile } = await import('node:fs');
const file = new File([readFile('my-model/model.safetensors')], 'model.safetensors');`,
  directoryHandle: `const directoryHandle = { write: async () => new WritableStream() };`,
  text: `const { readFileSync: readText } = await import('node:fs');
const text = readText('text.txt', 'utf8');`,
  tokenizer: `const { Tokenizer } = await import('@huggingface/tokenizers');
const jsonOf = async (name) => JSON.parse(new TextDecoder().decode(await model.siblingFile(name)));
const tokenizer = new Tokenizer(await jsonOf('tokenizer.json'), await jsonOf('tokenizer_config.json'));`,
  recorded: `const recorded = await (async () => {
  const layers = (await (await import('node:fs/promises')).readFile('layers.txt', 'utf8')).trim().split('\\n');
  return layers.map((line) => {
    const [layer, features] = line.split(' ');
    return { layer, data: Float32Array.from({ length: 4 * Number(features) }, (_, i) => Math.sin(i)), shape: [4, Number(features)] };
  });
})();`,
  encoder: `const { cpSync } = await import('node:fs');
cpSync(${JSON.stringify(join(root, 'tests/files/forward/bert'))}, './my-encoder', { recursive: true });
const texts = ['A cat sleeps.', 'The dog barks.', 'It is raining.'];
const tokenizer = { encode: (text) => [...text].map((letter) => letter.charCodeAt(0) % 40) };`,
  report: `const report = await quantizer.quantizeModel(model, 'int4_wo_128', { target: { write: async () => new WritableStream() } });`,
};

/** What a snippet ends with, so that the process ends. */
export const after = { quantizer: 'await quantizer[Symbol.asyncDispose]();' };
