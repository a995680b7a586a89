// Remarks on configs, models and runs.

/** One problem or remark. */
export interface Diagnostic {
  /** Errors stop a run; warnings and notes do not. */
  severity: 'error' | 'warning' | 'note';
  /** Kebab-case code, such as `key-unknown`. */
  code: string;
  /** JSON pointer into the config, or a tensor name. */
  where: string;
  /** What is wrong, as a sentence. */
  message: string;
  /** What to do. */
  hint?: string;
}
