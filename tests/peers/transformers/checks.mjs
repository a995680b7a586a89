// Folders of format compressed-tensors, loaded by transformers with compressed-tensors.
import { casesOf, checkRuntime } from '../runtimes/runtimes.mjs';

const format = 'compressed-tensors';
const integers = ['int8', 'int8_per_tensor', 'int8_dynamic'];
const groups = ['int4_wo_32', 'int4_wo_64', 'int4_wo_128', 'int4_wo_per_channel'];
const groupsWithZeroPoints = ['uint4_wo_32', 'uint4_wo_64', 'uint4_wo_128', 'uint4_wo_per_channel'];
const floats = ['fp8', 'fp8_per_channel', 'ptpc_fp8', 'fp8_per_block', 'fp8_per_block_dynamic'];
/** The loader makes such weights bfloat16 whatever is asked for. */
const blockFloats = ['mxfp4', 'nvfp4', 'mxfp8'];

// By default the loader expects zero points that are not packed, and so it refuses the files of its own compressor, too.
const defaultRefusals = { uint4_wo_64: '`ignore_mismatched_sizes`' };
const how = 'dequantize=True';
const conversion = 'issues during automatic conversion of the weights';

// Experts: the loader decompresses words without zero points, mxfp4, and fp8 with a scale a row or tensor. Those of other layouts are left, and load
// so; included, they do not. It drops the scale of NVFP4's tensors.
const unreadIntegers = ['int8_per_tensor', 'int8_dynamic'];
const unreadBlocks = ['nvfp4', 'mxfp8'];
const expertRefusals = {
  ...Object.fromEntries(
    [...unreadIntegers, 'fp8_per_block', 'fp8_per_block_dynamic', 'mxfp8'].map((preset) => [preset, conversion]),
  ),
  nvfp4: 'logits differ',
};
const included = { options: { experts: 'include' }, refusals: expertRefusals };
const excluded = { options: { experts: 'exclude' } };

/** The loader decompresses to the weights that the reference has, and rounds inputs as its hooks do. */
const isExact = true;
const tinyLlama = { format, model: 'tiny-llama', dtype: 'float32', isExact };
const tinyMoe = { format, model: 'tiny-moe', dtype: 'float32', isExact };
const smollm2 = { format, model: 'smollm2', dtype: 'float16', isExact };

const cases = [
  ...casesOf({ ...tinyLlama, presets: [...integers, ...groups, ...floats] }),
  ...casesOf({ ...tinyLlama, presets: ['uint4_wo_64'], refusals: defaultRefusals }),
  ...casesOf({ ...tinyLlama, presets: groupsWithZeroPoints, how }),
  ...casesOf({ ...tinyLlama, dtype: 'bfloat16', presets: blockFloats }),
  ...casesOf({ ...tinyMoe, presets: [...integers, ...groups, ...floats] }),
  ...casesOf({ ...tinyMoe, presets: ['uint4_wo_64'], how }),
  ...casesOf({ ...tinyMoe, dtype: 'bfloat16', presets: blockFloats }),
  ...casesOf({ ...tinyMoe, ...included, presets: [...unreadIntegers, 'fp8_per_block'] }),
  ...casesOf({ ...tinyMoe, ...included, dtype: 'bfloat16', presets: unreadBlocks }),
  ...casesOf({ ...tinyMoe, ...excluded, presets: ['int8', 'int4_wo_64', 'fp8_per_channel'] }),
  ...casesOf({ ...tinyMoe, ...excluded, dtype: 'bfloat16', presets: ['mxfp4'] }),
  ...casesOf({ ...smollm2, presets: ['int8', 'int4_wo_64', 'fp8_per_channel'] }),
  ...casesOf({ ...smollm2, presets: ['uint4_wo_64'], how }),
  ...casesOf({ ...smollm2, dtype: 'bfloat16', presets: ['mxfp4'] }),
  ...casesOf({
    format,
    model: 'minilm',
    dtype: 'float32',
    isExact,
    presets: ['int8', 'int4_wo_128', 'fp8_per_channel'],
  }),
  ...casesOf({ ...tinyLlama, isWrong: true, presets: ['int8_dynamic', 'ptpc_fp8', 'int4_wo_32'] }),
  ...casesOf({ ...tinyLlama, isWrong: true, presets: ['uint4_wo_64'], how }),
  ...casesOf({ ...tinyLlama, isWrong: true, dtype: 'bfloat16', presets: blockFloats }),
];

/** Rows of the table of `npm run test:peers`. */
export async function checkTransformers(environment, quantizer, folder, { only }) {
  return checkRuntime(environment, quantizer, folder, { cases, only });
}
