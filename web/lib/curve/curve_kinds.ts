// The options of `curve`, for arguments.ts.

import type { Kinds } from '../api/arguments.js';
import type { CurveOptions } from '../api/types.js';
import { runtimeNames } from './schemes.js';

export const curveOptions: Kinds<CurveOptions> = {
  schemes: 'strings',
  configs: 'object',
  target: runtimeNames,
  text: 'string',
  tokenizer: 'any', // tokensOfText says more
  tokens: 'object',
  windows: 'count',
  feeds: 'any', // outputs.ts reads them
  runtime: 'any', // a namespace object
  measureSpeed: 'boolean',
  signal: 'signal',
  onPoint: 'function',
  onProgress: 'function',
};
