// ONNX models that we quantize, in onnxruntime (logits of all positions) and onnxruntime-genai (five tokens); our checkpoints, read by
// genai's builder; and random small graphs (chains.mjs).
import { casesOf, checkRuntime } from '../runtimes/runtimes.mjs';
import { checkChains } from './chains.mjs';
import { OnnxWriter } from './onnx_writer.mjs';

const onnx = { format: 'onnx', dtype: 'float32' };
const integers = ['int8', 'int8_per_tensor', 'int8_dynamic'];
const groups = ['int4_wo_32', 'int4_wo_64', 'int4_wo_128', 'int4_wo_per_channel'];
const groupsWithZeroPoints = ['uint4_wo_32', 'uint4_wo_64', 'uint4_wo_128', 'uint4_wo_per_channel'];
const others = ['aihwkit_int8', 'aihwkit_int4', 'brevitas_int8', 'brevitas_int4_mse'];
const all = [...integers, ...groups, ...groupsWithZeroPoints, ...others];

/** Rows of 576 in groups of 128: the last one has 64. */
const padded = {
  isPadded: true,
  how: 'short last groups',
  model: 'tiny-llama',
  presets: ['int4_wo_128', 'uint4_wo_128'],
};

const built = { model: 'tiny-llama', dtype: 'float16', how: 'by its builder' };

// The builder takes one group size for all layers; of 128, some layers of this model have 64.
const groupsDiffer = 'RuntimeError: The size of tensor a';
// It reads zero points of version 2 as those of version 1, and codes of int4 as unsigned ones (of dense layers; it has another way for experts).
const differ = 'logits differ';
const gptqRefusals = { uint4_wo_64: differ };
const quarkRefusals = { uint4_wo_128: groupsDiffer, int4_wo_64: differ, int8: 'ValueError: Unexpected dtype: int8.' };

const cases = [
  ...casesOf({ ...onnx, model: 'tiny-llama', presets: all }),
  ...casesOf({
    ...onnx,
    model: 'minilm',
    presets: ['int8', 'int8_dynamic', 'int4_wo_32', 'uint4_wo_64', 'uint4_wo_128', 'uint4_wo_per_channel'],
  }),
  ...casesOf({ ...onnx, model: 'smollm2', presets: ['int4_wo_32', 'uint4_wo_64'] }),
  ...casesOf({
    ...onnx,
    model: 'tiny-llama',
    presets: ['int4_wo_32', 'int8'],
    options: { onnx: { qdq: true } },
    how: 'qdq',
  }),
  ...casesOf({
    ...onnx,
    model: 'tiny-llama',
    presets: ['int4_wo_32'],
    options: { onnx: { externalData: true } },
    how: 'external data',
  }),
  ...casesOf({
    ...onnx,
    model: 'tiny-llama',
    isWrong: true,
    presets: ['int8_dynamic', 'int8_per_tensor', 'int4_wo_32', 'uint4_wo_64'],
  }),
  ...casesOf({ ...onnx, ...padded }),
  ...casesOf({ ...onnx, ...padded, isWrong: true, presets: ['int4_wo_128'] }),
  ...casesOf({ ...built, format: 'awq', presets: ['uint4_wo_64'] }),
  ...casesOf({
    ...built,
    format: 'gptq',
    presets: ['int4_wo_64', 'int4_wo_128', 'uint4_wo_64'],
    refusals: gptqRefusals,
  }),
  ...casesOf({
    ...built,
    format: 'quark',
    presets: ['uint4_wo_64', 'uint4_wo_128', 'int4_wo_64', 'int8'],
    refusals: quarkRefusals,
  }),
  ...casesOf({
    ...built,
    format: 'compressed-tensors',
    presets: ['int4_wo_32'],
    refusals: { int4_wo_32: 'ModelOpt FP8/NVFP4 checkpoints are only supported on the CUDA EP.' },
  }),
];

/** Rows of the table of `npm run test:peers`. */
export async function checkOnnxruntime(environment, quantizer, folder, { only, seed, count }) {
  const writer = new OnnxWriter(environment, quantizer, folder);
  const [row, ...others] = await checkRuntime(environment, quantizer, folder, { cases, only, writer });
  row.note = `tokens, and checkpoints by its builder: onnxruntime-genai ${environment.versionOf('onnxruntime-genai')}`;
  return [row, ...others, await checkChains(environment, quantizer, folder, { seed, count })];
}
