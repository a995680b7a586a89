// Configs that were checked, and presets.

import type { Diagnostic } from './diagnostic_types.js';

/**
 * Config dialects, all of them read and written: AMD Quark's own, its Brevitas extension, IBM aihwkit, and the
 * `quantization_config` blocks of compressed-tensors, GPTQ and AWQ models. Blocks of fp8 models are recognised as well.
 */
export type Dialect = 'quark' | 'brevitas' | 'aihwkit' | 'compressed-tensors' | 'gptq' | 'awq';

/** A checked config. */
export interface QuantConfig {
  /** What the config is written in. */
  dialect: Dialect | 'fp8';
  /** The config in that dialect, with current key names; dialects other than Quark's also with every standard value. */
  config: Record<string, unknown>;
  /** Warnings and notes; errors throw instead. */
  diagnostics: Diagnostic[];
}

/** A ready-made config. */
export interface Preset {
  /** Name, as `plan` and `quantizeModel` take it. */
  name: string;
  /** A few words. */
  title: string;
  /** A sentence or two. */
  description: string;
  /** The config that it stands for. */
  config: Record<string, unknown>;
}
