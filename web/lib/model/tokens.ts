// Token sequences for a forward pass, from typed arrays or a tensor of a safetensors file.

import { check, shown } from '../api/arguments.js';
import { failure } from '../api/errors.js';
import type { Model, TextInput, TokenInput } from '../api/types.js';
import { OpenedModel } from './model.js';
import { tokensOfText } from './text_tokens.js';

/** Sequences of one length, one after another. */
export interface TokenBatch {
  ids: Int32Array;
  sequences: number;
  length: number;
}

const usualNames = ['input_ids', 'tokens'];

const argumentInvalid = (detail: string) => failure('argument-invalid', 'tokens', detail);

function shapeOf(shape: readonly number[], count: number): { sequences: number; length: number } {
  const [sequences, length] = shape.length === 1 ? [1, shape[0]] : shape;
  if (
    shape.length > 2 ||
    !shape.every(Number.isSafeInteger) ||
    sequences === undefined ||
    length === undefined ||
    sequences * length !== count ||
    count === 0
  ) {
    throw argumentInvalid(`${count} tokens of shape [${shape.map(shown).join(', ')}]; [sequences, length] is needed`);
  }
  return { sequences, length };
}

async function readTokens(model: Model, name: string | undefined): Promise<TokenInput> {
  if (!(model instanceof OpenedModel)) throw argumentInvalid('were not opened by this library');
  const wanted = name === undefined ? usualNames : [name];
  const tensor =
    wanted.map((candidate) => model.tensors.find((found) => found.name === candidate)).find(Boolean) ??
    (name === undefined && model.tensors.length === 1 ? model.tensors[0] : undefined);
  if (!tensor) {
    const names = model.tensors.slice(0, 8).map((found) => found.name);
    throw failure('tensor-missing', name ?? 'input_ids', `is not in the token file; it has ${names.join(', ')}`);
  }
  const source = model.weights[model.files.findIndex((file) => file.name === tensor.file)];
  if (!source) throw argumentInvalid(`${tensor.file} is not open`);
  const bytes = (await source.read(tensor.begin, tensor.end - tensor.begin)).slice();
  await source.close();
  const { shape } = tensor;
  if (tensor.dtype === 'I64') return { data: new BigInt64Array(bytes.buffer), shape };
  if (tensor.dtype === 'I32') return { data: new Int32Array(bytes.buffer), shape };
  if (tensor.dtype === 'U16') return { data: new Uint16Array(bytes.buffer), shape };
  throw failure('dtype-unsupported', tensor.name, `holds ${tensor.dtype}; tokens are I64, I32 or U16`);
}

function checkedInput({ data, shape }: TokenInput): TokenInput {
  if (!Array.isArray(data) && !(ArrayBuffer.isView(data) && 'length' in data))
    throw argumentInvalid('data is neither a list nor a typed array of token ids');
  if (!Array.isArray(shape)) throw argumentInvalid('need a shape: [sequences, length]');
  return { data, shape };
}

async function tokenInput(
  input: TokenInput | Model | TextInput,
  name: string | undefined,
  maxPositions: number,
): Promise<TokenInput> {
  check(input, 'object', 'tokens');
  if (name !== undefined) check(name, 'string', 'tensor');
  if ('data' in input) return checkedInput(input);
  return 'text' in input ? tokensOfText(input, maxPositions) : readTokens(input, name);
}

/** Checks tokens against the model: at least two per sequence, at most the model's maximum, all in its vocabulary. */
export async function tokenBatch(
  input: TokenInput | Model | TextInput,
  name: string | undefined,
  vocabulary: number,
  maxPositions: number,
): Promise<TokenBatch> {
  const { data, shape } = await tokenInput(input, name, maxPositions);
  const { sequences, length } = shapeOf(shape, data.length);
  if (length < 2) throw argumentInvalid('sequences of one token predict nothing; at least 2 are needed');
  if (length > maxPositions) {
    const detail = `sequences of ${length} tokens; the model has max_position_embeddings ${maxPositions}: cut them into shorter ones`;
    throw argumentInvalid(detail);
  }
  const ids = new Int32Array(data.length);
  for (const [i, token] of data.entries()) {
    const id = typeof token === 'number' || typeof token === 'bigint' ? Number(token) : Number.NaN;
    if (!Number.isInteger(id) || id < 0 || id >= vocabulary) {
      const where = `token ${shown(token)} at position ${i % length} of sequence ${Math.floor(i / length)}`;
      throw argumentInvalid(`${where} is not one of the model's ${vocabulary}; was another tokenizer used?`);
    }
    ids[i] = id;
  }
  return { ids, sequences, length };
}
