// Weights that reach their layers through random chains of Identity, Transpose, Cast, Reshape, Squeeze, Unsqueeze and Flatten: each model is quantized in several ways, and
// onnxruntime has to give what the float model gives.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { CaseRow } from '../case_row.mjs';

const spec = (rest) => ({ global_quant_config: rest, layer_type_quant_config: { Embedding: rest }, exclude: [] });
const groups = { dtype: 'int4', qscheme: 'per_group', group_size: 32, ch_axis: -1, symmetric: true };
const channels = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
const whole = { dtype: 'int8', qscheme: 'per_tensor', symmetric: true };
/** Ways to quantize, and the decibels that are left: three layers may follow each other. */
const ways = {
  int8: ['int8', {}, 18],
  int8_dynamic: ['int8_dynamic', {}, 12],
  qdq: ['int8', { qdq: true }, 18],
  int4: ['int4_wo_32', {}, 4],
  int4qdq: ['int4_wo_32', { qdq: true }, 4],
  embeddings: [spec({ weight: channels }), {}, 18],
  tensors: [spec({ weight: whole }), {}, 15],
  tied: [{ ...spec({ weight: groups }), indivisible_groups: 'fallback' }, {}, 4],
};
const script = 'chains.py';
/** A model whose only weights cannot be quantized is refused as a whole: nothing of it would change. */
const refusals = [
  {
    id: 'nothing quantized',
    text: 'the chain puts the elements of a weight into another order, so it stays, and no other weight can be quantized',
    explains: ({ code, message }) =>
      code === 'nothing-quantized' ||
      (code === 'format-unsupported' && message.includes('supports groups only for matrices')),
  },
];

/** A row of the table of `npm run test:peers`. */
export async function checkChains(environment, quantizer, folder, { seed, count }) {
  const row = new CaseRow('weights behind Identity, Transpose, Cast, Reshape');
  const models = join(folder, 'chains');
  mkdirSync(models);
  const mixed = new Set();
  for await (const { mixed: number } of environment.lines(script, 'make', models, String(count), String(seed)))
    mixed.add(number);
  for (let number = 0; number < Number(count); ++number)
    for (const [way, [config, onnx]] of Object.entries(ways)) {
      const model = await quantizer.open(join(models, `${number}.onnx`));
      try {
        const target = join(models, `${number}-${way}.onnx`);
        await quantizer.quantizeModel(model, config, { target, onnx });
      } catch (error) {
        row.refuse(`${number}-${way}`, mixed.has(number) ? refusals : [], error, error.message);
      } finally {
        await model.close();
      }
    }
  for await (const { name, answer } of environment.lines(script, 'judge', models)) {
    const least = ways[name.split('-')[1]][2];
    row.add(
      name,
      typeof answer === 'number' && answer >= least ? [] : [`${answer} dB, at least ${least} were expected`],
    );
  }
  return row;
}
