// A tiny Mixtral whose router never chooses its last expert: rows r, -r, s, -s and 0 of the router, of which the two largest are never 0.
import { decoderTensors, writeDecoder } from './written_decoder.mjs';
import { noise } from './written_model.mjs';

export const sizes = {
  vocabulary: 96,
  hidden: 64,
  inner: 96,
  layers: 2,
  heads: 4,
  positions: 128,
  experts: 5,
  chosen: 2,
};
export const unseen = sizes.experts - 1;

/** Sequences of 64 tokens that follow each other in some ways more often than in others. */
export function mixtureTokens(sequences, seed = 1) {
  const values = noise(sequences * 64, seed);
  const data = new Int32Array(values.length);
  for (let i = 0; i < data.length; ++i)
    data[i] = (Math.floor((values[i] + 1) * 12) + 5 * (data[i - 1] ?? 0)) % sizes.vocabulary;
  return { data, shape: [sequences, 64] };
}

/** Writes the model into `folder`. */
export function writeTinyMixture(folder) {
  const tensors = decoderTensors(sizes);
  const { hidden, layers, experts } = sizes;
  for (let layer = 0; layer < layers; ++layer) {
    const { data } = tensors[`model.layers.${layer}.block_sparse_moe.gate.weight`];
    for (let row = 0; row < experts; ++row)
      for (let i = 0; i < hidden; ++i) {
        if (row === unseen) data[row * hidden + i] = 0;
        else if (row % 2 === 1) data[row * hidden + i] = -data[(row - 1) * hidden + i];
      }
  }
  return writeDecoder(folder, tensors, sizes);
}
