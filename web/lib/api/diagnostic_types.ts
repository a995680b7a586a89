// Remarks on configs, models and runs.

import type { DiagnosticCode } from '../generated/codes.js';

export type { DiagnosticCode };

/** One problem or remark. */
export interface Diagnostic {
  /** Errors stop a run; warnings and notes do not. */
  severity: 'error' | 'warning' | 'note';
  /** What kind of problem it is, such as `key-unknown`. */
  code: DiagnosticCode;
  /** JSON pointer into the config, or a tensor name. */
  where: string;
  /** What is wrong, as a sentence. */
  message: string;
  /** What to do. */
  hint?: string;
}
