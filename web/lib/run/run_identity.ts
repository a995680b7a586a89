// What decides the output of a run, for all that take over the work of another run: `reuse`, `resume` and the parts of a run.

import { failure } from '../api/errors.js';
import type { RunIdentity } from '../api/types.js';
import type { Instance } from '../engine/instance.js';
import type { FileSource } from '../io/file_source.js';
import type { OpenedModel } from '../model/model.js';
import { type PackedPlan, withWork } from '../plan/packed_plan.js';

const encoder = new TextEncoder();

/** FNV-1a of 64 bits, against mistakes, not against forgery: pages without TLS have no SubtleCrypto. */
class Digest {
  #high = 0xcbf29ce4;
  #low = 0x84222325;

  add(...parts: (string | Uint8Array)[]): this {
    let [high, low] = [this.#high, this.#low];
    for (const part of parts)
      for (const byte of typeof part === 'string' ? encoder.encode(`${part}\0`) : part) {
        low = (low ^ byte) >>> 0;
        // Times the prime 2^40 + 0x1b3; products of 32 and 9 bits are exact.
        const product = low * 0x1b3;
        high = (high * 0x1b3 + Math.floor(product / 2 ** 32) + low * 256) % 2 ** 32;
        low = product >>> 0;
      }
    this.#high = high;
    this.#low = low;
    return this;
  }

  get text(): string {
    return [this.#high, this.#low].map((half) => half.toString(16).padStart(8, '0')).join('');
  }
}

/** Independent of tiles, workers and the model's values. */
export function runIdentity(instance: Instance, { work, plan }: PackedPlan): RunIdentity {
  const { library } = instance.call<{ library: string }>((module) => module.version());
  const tasks = new Digest().add(plan.format);
  for (const piece of work) tasks.add(withWork(instance, piece, (held) => instance.bytes(() => held.identity())));
  return { library, tasks: tasks.text };
}

/** Names, sizes and known bytes of the files, config.json and the index. */
export function filesDigest({ files, outputConfig, shardMap }: PackedPlan): string {
  const digest = new Digest().add(outputConfig, shardMap);
  for (const { name, bytes, literals } of files) {
    digest.add(name, String(bytes));
    for (const { offset, bytes: known } of literals) digest.add(String(offset), known);
  }
  return digest.text;
}

/** An input file that is told from others of its name and size by this machine or its server. Errors: argument-invalid. */
export function inputText({ name, size, identity }: FileSource): string {
  if (identity !== undefined) return `${name}, ${size} bytes, ${identity}`;
  const detail = `${name} cannot be told from another file of its size; resume needs paths, or URLs with an ETag`;
  throw failure('argument-invalid', 'resume', detail);
}

/** What is read of a model whose copies on several machines are compared: all of small ones, a piece of each tensor of large ones. */
const sampledBytes = 32 * 2 ** 20;
const leastPiece = 4096;
const mostPieces = 1024;

/** Tells the values of models apart, wherever their files lie; values that differ nowhere else than between the pieces are not seen. */
export async function valuesDigest(model: OpenedModel): Promise<string> {
  const digest = new Digest();
  const share = Math.min(1, sampledBytes / model.tensors.reduce((sum, { bytes }) => sum + bytes, 1));
  const step = Math.ceil(model.tensors.length / mostPieces);
  for (const { name, size } of model.weights) digest.add(name, String(size));
  for (let number = 0; number < model.tensors.length; number += step) {
    const tensor = model.tensors[number];
    const source = model.weights[model.files.findIndex(({ name }) => name === tensor?.file)];
    if (!tensor || !source) continue;
    const stored = tensor.end - tensor.begin;
    const bytes = Math.min(stored, Math.max(leastPiece, Math.ceil(stored * share)));
    digest.add(tensor.name, await source.read(tensor.begin + Math.floor((stored - bytes) / 2), bytes));
  }
  return digest.text;
}
