export type CommandName =
  | 'auto'
  | 'checkConfig'
  | 'compare'
  | 'convertConfig'
  | 'curve'
  | 'evaluate'
  | 'explain'
  | 'formats'
  | 'generate'
  | 'imatrix'
  | 'inspect'
  | 'mergeIndex'
  | 'plan'
  | 'presets'
  | 'quantize';

/** A command as it was typed, checked and parsed. It can be sent to a thread. */
export interface Asked {
  name: CommandName;
  /** The arguments that are no options. */
  given: (string | undefined)[];
  options: object;
}
