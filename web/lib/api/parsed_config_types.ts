// Checked configs, and presets.

import type { Dialect } from '../generated/dialects.js';
import type { Diagnostic } from './diagnostic_types.js';
import type { QuantizationSpec } from './tensor_types.js';

export type { Config, Dialect, PresetName } from '../generated/dialects.js';

/** A checked config. */
export interface QuantConfig {
  /** Dialect of `config`. */
  dialect: Dialect | 'fp8';
  /** The config in that dialect, with current key names; outside Quark, every default is filled in. */
  config: Record<string, unknown>;
  /** Whether one of its algorithms looks at activations, so that a run needs `calibration` with tokens. */
  needsTokens: boolean;
  /** Warnings and notes; errors throw instead. */
  diagnostics: Diagnostic[];
}

/** Changes of a config; each stands before what the config says. */
export interface PresetEdits {
  /** Layers that are not quantized, by name or pattern. */
  exclude?: string[];
  /** By name or pattern: another preset, or a spec. For recipes of GGUF files: a type of llama.cpp, such as `q8_0`. */
  layers?: Record<string, string | QuantizationSpec | QuantizationSpec[]>;
  /** By class of the layer, `Embedding`, `GRU`, `Conv2d` ...: another preset, or a spec. Not for recipes. */
  layerTypes?: Record<string, string | QuantizationSpec | QuantizationSpec[]>;
  /**
   * The algorithms and scales that lose least at the config's size, for runs with `calibration`: `awq` with duo scaling, then `gptq`
   * refined, and scales of integers by least squares. Files and runtimes are the same. For configs in Quark's dialect and GGUF recipes
   * that round and name no algorithms. Default false.
   */
  best?: boolean;
}

/** A ready-made config. */
export interface Preset {
  /** Name, as `plan` and `quantizeModel` take it. */
  name: string;
  /** Short title. */
  title: string;
  /** One or two sentences. */
  description: string;
  /** The config it stands for. */
  config: Record<string, unknown>;
}
