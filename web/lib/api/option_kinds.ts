// The options of the public functions, for arguments.ts.

import { dialects } from '../generated/dialects.js';
import type { Kinds } from './arguments.js';
import { inputFormats } from './formats.js';
import type {
  CompareOptions,
  OpenOptions,
  OutputOptions,
  PlanOptions,
  PreviewOptions,
  QuantizeModelOptions,
  QuantizerOptions,
} from './types.js';

export const quantizerOptions: Kinds<QuantizerOptions> = {
  threads: 'number',
  wasmUrl: 'url',
  wasmModule: 'object',
  workerUrl: 'url',
  workersAfterMs: 'number',
  memoryBudgetBytes: 'number',
};

/** What `dialect` may be. */
export const dialectNames: readonly string[] = ['auto', ...dialects];

export const openOptions: Kinds<OpenOptions> = {
  format: inputFormats,
  stripPrefix: 'boolean',
  hub: { token: 'string', endpoint: 'string' },
};

export const outputOptions: Kinds<OutputOptions> = {
  format: 'string',
  onnx: { qdq: 'boolean', externalData: 'boolean', constantInputs: 'boolean', accuracyLevel: [0, 1, 2, 3, 4] },
  gguf: { imatrix: 'bytes', imatrixName: 'string', shardBytes: 'count', mmproj: 'boolean' },
  includeTowers: 'boolean',
  experts: ['include', 'exclude'],
};

export const planOptions: Kinds<PlanOptions> = { ...outputOptions, calibrated: 'boolean', signal: 'signal' };

export const previewOptions: Kinds<PreviewOptions> = { ...outputOptions, signal: 'signal' };

export const runOptions: Kinds<QuantizeModelOptions> = {
  ...outputOptions,
  target: 'any',
  calibration: 'any',
  reuse: { config: 'any', output: 'any', report: 'object' },
  shards: { part: 'number', of: 'number' },
  signal: 'signal',
  onProgress: 'function',
  overwrite: 'boolean',
  resume: 'boolean',
};

export const compareOptions: Kinds<CompareOptions> = {
  runtime: 'any',
  feeds: 'any',
  windows: 'count',
  measureSpeed: 'boolean',
  onOutput: 'function',
  signal: 'signal',
  onProgress: 'function',
};

export const watched = { signal: 'signal', onProgress: 'function' } as const;
