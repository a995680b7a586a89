// Token sequences for a forward pass, from arrays, rows, text or tensors of a safetensors file. Padding that a mask names
// is cut off.

import { check, reading, shown } from '../api/arguments.js';
import { failure } from '../api/errors.js';
import type { Model, TensorInfo, TextInput, TokenInput, TokenRows } from '../api/types.js';
import { arrayName } from '../api/values.js';
import { type MaskValues, type Run, runsOf } from './attention_mask.js';
import { OpenedModel } from './model.js';
import { tokensOfText, type Windows } from './text_tokens.js';

export type { Windows } from './text_tokens.js';

/** Sequences one after another, without padding. */
export interface TokenBatch {
  ids: Int32Array;
  /** Tokens of each sequence, at least 1. */
  lengths: number[];
}

/** The longest sequence's tokens. */
export const longestOf = ({ lengths }: Pick<TokenBatch, 'lengths'>) =>
  lengths.reduce((longest, length) => Math.max(longest, length), 0);

/** Sequences [first, last) of a batch. */
export function partOf({ ids, lengths }: TokenBatch, first: number, last: number): TokenBatch {
  const sum = (count: number) => lengths.slice(0, count).reduce((all, length) => all + length, 0);
  return { ids: ids.slice(sum(first), sum(last)), lengths: lengths.slice(first, last) };
}

const usualNames = ['input_ids', 'tokens'];
const maskName = 'attention_mask';

const argumentInvalid = (detail: string) => failure('argument-invalid', 'tokens', detail);

/** The rows of an array without mask. */
function rowsOf(shape: readonly number[], count: number): Run[] {
  const [rows, length] = shape.length === 1 ? [1, shape[0]] : shape;
  if (
    shape.length > 2 ||
    !shape.every(Number.isSafeInteger) ||
    rows === undefined ||
    length === undefined ||
    rows * length !== count ||
    count === 0
  )
    throw argumentInvalid(`${count} tokens of shape [${shape.map(shown).join(', ')}]; [sequences, length] is needed`);
  return Array.from({ length: rows }, (_, row) => ({ begin: row * length, end: (row + 1) * length }));
}

type Integers = Int32Array | Uint32Array | Uint16Array | Int16Array | Int8Array | Uint8Array | BigInt64Array;
const tokenTypes: Record<string, new (buffer: ArrayBuffer) => Integers> = {
  I64: BigInt64Array,
  I32: Int32Array,
  U16: Uint16Array,
};
const maskTypes: Record<string, new (buffer: ArrayBuffer) => Integers> = {
  ...tokenTypes,
  U32: Uint32Array,
  I16: Int16Array,
  I8: Int8Array,
  U8: Uint8Array,
  BOOL: Uint8Array,
};

async function readIntegers(
  model: OpenedModel,
  tensor: TensorInfo,
  types: typeof maskTypes,
  what: string,
): Promise<Integers> {
  const source = model.weights[model.files.findIndex((file) => file.name === tensor.file)];
  if (!source) throw argumentInvalid(`${tensor.file} is not open`);
  const type = types[tensor.dtype];
  if (!type) {
    const names = Object.keys(types);
    const known = `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
    throw failure('dtype-unsupported', tensor.name, `holds ${tensor.dtype}; ${what} are ${known}`);
  }
  const bytes = (await source.read(tensor.begin, tensor.end - tensor.begin)).slice();
  await source.close();
  return new type(bytes.buffer);
}

async function readTokens(model: Model, name: string | undefined): Promise<TokenInput> {
  if (!(model instanceof OpenedModel)) throw argumentInvalid('were not opened by this library');
  const wanted = name === undefined ? usualNames : [name];
  const others = model.tensors.filter((tensor) => tensor.name !== maskName);
  const tensor =
    wanted.map((candidate) => model.tensors.find((found) => found.name === candidate)).find(Boolean) ??
    (name === undefined && others.length === 1 ? others[0] : undefined);
  if (!tensor) {
    const names = model.tensors.slice(0, 8).map((found) => found.name);
    throw failure('tensor-missing', name ?? 'input_ids', `is not in the token file; it has ${names.join(', ')}`);
  }
  const data = (await readIntegers(model, tensor, tokenTypes, 'tokens')) as TokenInput['data'];
  const mask = model.tensors.find((found) => found.name === maskName);
  if (!mask || mask === tensor) return { data, shape: tensor.shape };
  const values = await readIntegers(model, mask, maskTypes, 'masks');
  return { data, shape: tensor.shape, mask: { data: values, shape: mask.shape } };
}

/** Errors: argument-invalid. */
function checkedInput(input: TokenInput): TokenInput {
  const { data, shape, mask } = input;
  const isList = (values: unknown) => Array.isArray(values) || (ArrayBuffer.isView(values) && 'length' in values);
  if (!isList(data)) throw argumentInvalid('data is neither a list nor a typed array of token ids');
  checkWhole(data);
  if (!Array.isArray(shape)) throw argumentInvalid('need a shape: [sequences, length]');
  if (mask === undefined) return input;
  check(mask, 'object', 'tokens.mask');
  if (!isList(mask.data)) throw argumentInvalid('need a mask whose data is a list or a typed array');
  check(mask.shape, 'list', 'tokens.mask.shape');
  return input;
}

/** Arrays of floats are activations or logits, even where their values are whole. */
function checkWhole(data: unknown): void {
  const name = arrayName(data);
  if (!name?.startsWith('Float')) return;
  throw argumentInvalid(`found ${name}; token ids are an Int32Array, a BigInt64Array or a list of integers`);
}

/** The rows as one array, and where each begins and ends. */
function joined({ rows }: TokenRows): { data: ArrayLike<number | bigint>; runs: Run[] } {
  if (!Array.isArray(rows) || rows.some((row) => !Array.isArray(row) && !ArrayBuffer.isView(row)))
    throw argumentInvalid('rows are not arrays of token ids');
  for (const row of rows) checkWhole(row);
  const data: (number | bigint)[] = [];
  const runs = rows.map((row) => {
    const begin = data.length;
    for (let i = 0; i < row.length; ++i) data.push(row[i] ?? Number.NaN);
    return { begin, end: data.length };
  });
  return { data, runs: runs.filter(({ begin, end }) => end > begin) };
}

async function textOf(
  input: TokenInput | TokenRows | Model | TextInput,
  name: string | undefined,
  maxPositions: number,
  windows: Windows | undefined,
): Promise<{ data: ArrayLike<number | bigint>; runs: Run[] }> {
  check(input, 'object', 'tokens');
  if (name !== undefined) check(name, 'string', 'tensor');
  if ('rows' in input) return joined(input);
  const array =
    'data' in input
      ? input
      : 'text' in input
        ? tokensOfText(input, maxPositions, windows)
        : await readTokens(input as Model, name);
  const { data, shape, mask } = checkedInput(array);
  const runs = rowsOf(shape, data.length);
  return { data, runs: mask ? reading('tokens.mask', () => runsOf(mask.data as MaskValues, mask.shape, shape)) : runs };
}

/** Checks tokens against the model: two in a sequence, at most the model's maximum, all in its vocabulary. Padding is
 * not looked at. Errors: argument-invalid, naming sequence and position in it; dtype-unsupported, tensor-missing. */
export async function tokenBatch(
  input: TokenInput | TokenRows | Model | TextInput,
  name: string | undefined,
  vocabulary: number,
  maxPositions: number,
  windows?: Windows,
): Promise<TokenBatch> {
  const { data, runs } = await textOf(input, name, maxPositions, windows);
  const lengths = runs.map(({ begin, end }) => end - begin);
  const longest = longestOf({ lengths });
  if (longest === 0) throw argumentInvalid('there are none: every row is empty or padding');
  if (longest < 2) throw argumentInvalid('sequences of one token predict nothing; at least 2 are needed');
  if (longest > maxPositions) {
    const detail = `sequences of ${longest} tokens; the model has max_position_embeddings ${maxPositions}: cut them into shorter ones`;
    throw argumentInvalid(detail);
  }
  const ids = new Int32Array(lengths.reduce((sum, length) => sum + length, 0));
  let at = 0;
  for (const [sequence, { begin, end }] of runs.entries()) {
    for (let i = begin; i < end; ++i) {
      const token = data[i];
      const id = typeof token === 'number' || typeof token === 'bigint' ? Number(token) : Number.NaN;
      if (!Number.isInteger(id) || id < 0 || id >= vocabulary) {
        const where = `token ${shown(token)} at position ${i - begin} of sequence ${sequence}`;
        throw argumentInvalid(`${where} is not one of the model's ${vocabulary}; was another tokenizer used?`);
      }
      ids[at++] = id;
    }
  }
  return { ids, lengths };
}
