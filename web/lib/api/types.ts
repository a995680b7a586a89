/** The public types of wasmquant. */

export type * from './calibration_types.js';
export type * from './compare_types.js';
export type * from './curve_types.js';
export type * from './diagnostic_types.js';
export type { InputFormat, OutputFormat } from './formats.js';
export type * from './language_model_types.js';
export type * from './model_types.js';
export type * from './parsed_config_types.js';
export type * from './plan_types.js';
export type * from './progress_types.js';
export type * from './quantizer_types.js';
export type * from './report_types.js';
export type * from './run_types.js';
export type * from './source_types.js';
export type * from './tensor_types.js';
