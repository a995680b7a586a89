// The options of language models and calibration, for arguments.ts; loaded with the methods.

import type { Kinds } from './arguments.js';
import { watched } from './option_kinds.js';
import type {
  AutoConfigOptions,
  EmbeddingOptions,
  EvaluateOptions,
  GenerateOptions,
  ImportanceOptions,
  TokenCalibration,
} from './types.js';

export const tokenCalibration: Kinds<TokenCalibration> = { tokens: 'object', tensor: 'string', source: 'any' };

export const evaluateOptions: Kinds<EvaluateOptions> = {
  ...watched,
  tokens: 'object',
  tensor: 'string',
  bytesPerToken: 'number',
  activations: ['float32', 'int8', 'gguf'],
  against: 'any', // evaluate says more
  scored: ['all', 'second-half'],
};

export const embeddingOptions: Kinds<EmbeddingOptions> = {
  ...watched,
  texts: 'any', // embedTexts says more, of all of these
  tokenizer: 'any',
  length: 'any',
  pooling: ['mean', 'first', 'last'],
  activations: ['float32', 'int8'],
  against: 'any',
};

export const generateOptions: Kinds<GenerateOptions> = {
  ...watched,
  tokens: 'any', // promptIds says more
  text: 'string',
  tokenizer: 'any',
  count: 'number',
};

export const autoConfigOptions: Kinds<AutoConfigOptions> = {
  ...watched,
  targetBits: 'any', // one of the three; findConfig says more
  targetBytes: 'any',
  maxLoss: 'any',
  calibration: tokenCalibration,
  candidates: 'list',
  exclude: 'strings',
  format: 'string',
  includeTowers: 'boolean',
  experts: ['include', 'exclude'],
};

export const importanceOptions: Kinds<ImportanceOptions> = {
  calibration: 'any',
  format: ['gguf', 'dat'],
  dataset: 'string',
  signal: 'signal',
};
