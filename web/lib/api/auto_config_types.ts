// Configs that are found for a budget.

import type { TokenCalibration } from './calibration_types.js';
import type { OutputFormat } from './formats.js';
import type { Totals } from './plan_types.js';
import type { Progress } from './progress_types.js';
import type { QuantizationSpec } from './tensor_types.js';

/** Options of `autoConfig`; give exactly one of the three targets. */
export interface AutoConfigOptions {
  /** One of the three. Bits per quantized weight with scales, as `totals.bitsPerWeight` of a plan counts them. */
  targetBits?: number;
  /** Bytes of the whole output, as `totals.bytesAfter` of a plan counts them. */
  targetBytes?: number;
  /** Sum of the layers' `loss`. */
  maxLoss?: number;
  /** Token ids, as for calibrated algorithms; 8 × 256 are plenty. */
  calibration: TokenCalibration;
  /** Specs to choose from. Default: those of `autoCandidates` that the format can hold for every layer. */
  candidates?: QuantizationSpec[];
  /** Layers that keep their dtype, as all do that are not linear layers of a block. Default `['lm_head']`. */
  exclude?: string[];
  /** Default `compressed-tensors`. */
  format?: OutputFormat;
  /** As of `plan`; the run that follows needs the same. */
  includeTowers?: boolean;
  /** As for `plan`. */
  includeExperts?: boolean;
  /** Cancels. */
  signal?: AbortSignal;
  /** Called while layers are measured. */
  onProgress?: (progress: Progress) => void;
}

/** What one candidate costs in one layer. */
export interface AutoChoice {
  /** Size of the layer's weight with this candidate. */
  bytes: number;
  /** Estimated loss of the model from this layer alone; smaller is better. */
  loss: number;
}

/** One layer of the table that led to a config. */
export interface AutoLayer {
  /** Layer name. */
  name: string;
  /** Elements of its weight. */
  elements: number;
  /** In the order of `candidates`; null where one does not fit the layer. */
  choices: (AutoChoice | null)[];
  /** Index into `choices`. */
  chosen: number;
}

/** A config for a budget, and how it was chosen. */
export interface AutoConfig {
  /** An ordinary config for `plan` and `quantizeModel`. */
  config: Record<string, unknown>;
  /** Specs that were tried, in order. */
  candidates: QuantizationSpec[];
  /** Every layer that was measured. */
  layers: AutoLayer[];
  /** Of the plan that `config` gives. */
  totals: Totals;
  /** Sum over layers: relative squared error of the residual stream, each layer measured alone. */
  loss: number;
}
