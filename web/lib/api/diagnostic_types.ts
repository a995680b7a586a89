// Remarks on configs, models and runs.

/** One problem or remark. */
export interface Diagnostic {
  severity: 'error' | 'warning' | 'note';
  /** Kebab-case code, such as `key-unknown`. */
  code: string;
  /** JSON pointer into the config, or a tensor name. */
  where: string;
  message: string;
  /** What to do. */
  hint?: string;
}
