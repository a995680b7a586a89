// Folders with modules.json, loaded by sentence-transformers as their load lines say: embeddings of texts against those of the float model.
import { join } from 'node:path';
import { CaseRow } from '../case_row.mjs';

const families = ['bert', 'distilbert', 'qwen3'];
/** [preset, format, smallest cosine]: what the preset loses on weights of these widths. */
const outputs = [
  ['int8', 'compressed-tensors', 0.999],
  ['int8_dynamic', 'compressed-tensors', 0.999],
  ['fp8_per_channel', 'compressed-tensors', 0.99],
  ['int4_wo_32', 'compressed-tensors', 0.95],
  ['int8', 'fake-quantized', 0.999],
  ['bfloat16', 'fake-quantized', 0.99],
];
/** sentence-transformers calls forward itself, and compressed-tensors decodes weights in a hook of the call. */
const plainRefusals = [
  {
    id: 'hook-not-run',
    explains: (error) => /has no attribute 'weight'|same dtype/.test(error),
    text: 'without dequantize=True, encode() of compressed-tensors meets codes, or no weight, and fails',
  },
];

/** Rows of the table of `npm run test:peers`. */
export async function checkSentenceTransformers(environment, quantizer, folder) {
  for await (const _ of environment.lines('run.py', 'make', folder));
  const written = new Map();
  for (const family of families) {
    const model = await quantizer.open(join(folder, family));
    for (const [preset, format, least] of outputs) {
      const target = join(folder, `${family}+${preset}+${format}`);
      await quantizer.quantizeModel(model, preset, { target, format });
      written.set(target, { name: `${family} ${preset} ${format}`, least });
    }
    await model.close();
  }
  const row = new CaseRow(
    'sentence-transformers: embeddings of our folders with modules.json are near those of the float model',
  );
  for await (const { path, way, cosine, error } of environment.lines('run.py', 'encode', folder, ...written.keys())) {
    const { name, least } = written.get(path);
    const isPacked = path.endsWith('compressed-tensors');
    if (isPacked && way === 'plain') {
      if (error === undefined) row.add(name, ['works now without dequantize=True; the load lines need not say it']);
      else row.refuse(name, plainRefusals, error, error);
    } else if (error !== undefined) row.add(name, [error]);
    else row.add(name, cosine >= least ? [] : [`cosine ${cosine}; at least ${least}`]);
  }
  return [row];
}
