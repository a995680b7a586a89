// Leaves the padding of a feed out of its activations: what its attention_mask marks with 0 counts in no statistic.

import { failure } from '../api/errors.js';
import type { ActivationBatch } from '../api/types.js';
import { arrayName } from '../api/values.js';

/** What a feed says about its tokens: which of [sequences, length] are text. */
export interface FeedMask {
  sequences: number;
  length: number;
  isText: Uint8Array;
}

interface MaskTensor {
  readonly dims: readonly number[];
  readonly data: unknown;
}

/** The mask of feed `number`; null if it has none, or one without padding. Errors: argument-invalid (a value other than 0
 * and 1). Masks of other ranks than two are the model's own affair. */
export function maskOf(feed: Record<string, MaskTensor | undefined>, number: number): FeedMask | null {
  const tensor = feed.attention_mask;
  const [sequences, length] = tensor?.dims ?? [];
  if (tensor?.dims.length !== 2 || sequences === undefined || length === undefined) return null;
  const isText = Uint8Array.from(tensor.data as ArrayLike<number | bigint | boolean>, (value) => {
    const one = Number(value);
    if (one === 0 || one === 1) return one;
    throw failure('argument-invalid', 'attention_mask', `of feed ${number} has a ${value}; 1 is a token, 0 padding`);
  });
  return isText.includes(0) ? { sequences, length, isText } : null;
}

/** The batch without rows of padding; null if nothing is left. Batches that are neither [sequences, length, features] nor
 * [sequences * length, features] are not rows of tokens and stay whole. */
export function withoutPadding(batch: ActivationBatch, mask: FeedMask | null): ActivationBatch | null {
  if (!mask) return batch;
  const { shape, data } = batch;
  const { sequences, length, isText } = mask;
  const isBatched = shape.length === 3 && shape[0] === sequences && shape[1] === length;
  const isFlat = shape.length === 2 && shape[0] === sequences * length;
  const features = shape.at(-1) ?? 0;
  if (!isBatched && !isFlat) return batch;
  const kept = isText.reduce((sum, one) => sum + one, 0);
  if (kept === 0) return null;
  const rows =
    arrayName(data) === 'Float32Array' ? new Float32Array(kept * features) : new Uint16Array(kept * features);
  let row = 0;
  for (const [token, isKept] of isText.entries())
    if (isKept) rows.set(data.subarray(token * features, (token + 1) * features), row++ * features);
  return { ...batch, data: rows, shape: [kept, features] };
}
