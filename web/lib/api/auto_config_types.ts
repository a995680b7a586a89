// Configs chosen for a budget.

import type { TokenCalibration } from './calibration_types.js';
import type { OutputFormat } from './formats.js';
import type { Totals } from './plan_types.js';
import type { Progress } from './progress_types.js';
import type { QuantizationSpec } from './tensor_types.js';

/** Options of `autoConfig`; give exactly one of the three targets. */
export interface AutoConfigOptions {
  /** One of the three. Bits per quantized weight including scales, counted as in `totals.bitsPerWeight` of a plan. */
  targetBits?: number;
  /** Bytes of the whole output, counted as in `totals.bytesAfter` of a plan. */
  targetBytes?: number;
  /** Upper limit for the sum of the layers' `loss`, of a GGUF mixture for `measuredLoss`, in nats. */
  maxLoss?: number;
  /** Token ids, as for calibrated algorithms; 8 × 256 are enough. */
  calibration: TokenCalibration;
  /** Specs to choose from; of GGUF types, `{ dtype: 'q4_k' }`. Default: those that the format supports, of GGUF those whose codes algorithms choose. */
  candidates?: QuantizationSpec[];
  /** Layers that keep their dtype, in addition to all outside of blocks. Default `['lm_head']`; in GGUF none, and tables of tokens get a type, too. */
  exclude?: string[];
  /** Default `compressed-tensors`. */
  format?: OutputFormat;
  /** As for `plan`; the later run needs the same value. */
  includeTowers?: boolean;
  /** As for `plan`; the later run needs the same value. */
  experts?: 'include' | 'exclude';
  /** Cancels. */
  signal?: AbortSignal;
  /** Called while layers are measured. */
  onProgress?: (progress: Progress) => void;
}

/** What one candidate costs in one layer. */
export interface AutoChoice {
  /** Size of the layer's weight with this candidate. */
  bytes: number;
  /** Estimated loss of the model from only this layer; smaller is better. */
  loss: number;
}

/** One measured layer. */
export interface AutoLayer {
  /** Layer name. */
  name: string;
  /** Elements of the weight. */
  elements: number;
  /** In the order of `candidates`; null if one does not fit the layer. */
  choices: (AutoChoice | null)[];
  /** Index into `choices`. */
  chosen: number;
}

/** A config for a budget, with the measurements behind it. */
export interface AutoConfig {
  /** An ordinary config for `plan` and `quantizeModel`. */
  config: Record<string, unknown>;
  /** The specs that were tried, in order. */
  candidates: QuantizationSpec[];
  /** Every measured layer. */
  layers: AutoLayer[];
  /** Totals of the plan for `config`. */
  totals: Totals;
  /**
   * Sum over layers of the relative squared error of the residual stream, each layer measured by itself; of a GGUF mixture in nats, the
   * mean Kullback-Leibler divergence that each layer was measured to cause.
   */
  loss: number;
  /** Of a GGUF mixture: the mean KLD of the model with all layers rounded to nearest as chosen, on the calibration's first 512 tokens. */
  measuredLoss?: number;
}
