// Exports shared by both entries.

export type * from '../generated/config_types.js';
export {
  aihwkitConfig,
  brevitasConfig,
  dynamicInput,
  microscaling,
  nvfp4,
  perChannel,
  perGroup,
  perTensor,
  progressive,
  type QuarkConfigParts,
  quarkConfig,
} from './config_builders.js';
export type { CoreErrorCode, LibraryErrorCode, PlainError } from './errors.js';
export { coreErrorCodes, isQuantizationError, libraryErrorCodes, QuantizationError } from './errors.js';
export { inputFormats, outputFormats } from './formats.js';
export { planJson, planOf } from './plan_json.js';
export type * from './types.js';
