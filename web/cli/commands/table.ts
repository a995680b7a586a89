/** What each command does, loaded once it is asked for. */
import type { Asked, CommandName } from '../asked.js';
import type { Context, Outcome } from '../outcome.js';

const commands = {
  auto: async () => (await import('./auto.js')).auto,
  checkConfig: async () => (await import('./config.js')).checkConfig,
  compare: async () => (await import('./compare.js')).compare,
  convertConfig: async () => (await import('./config.js')).convertConfig,
  curve: async () => (await import('./curve.js')).curve,
  evaluate: async () => (await import('./evaluate.js')).evaluate,
  explain: async () => (await import('./explain.js')).explain,
  formats: async () => (await import('./formats.js')).formats,
  generate: async () => (await import('./generate.js')).generate,
  imatrix: async () => (await import('./imatrix.js')).imatrix,
  inspect: async () => (await import('./inspect.js')).inspect,
  mergeIndex: async () => (await import('./merge_index.js')).mergeIndex,
  plan: async () => (await import('./plan.js')).plan,
  presets: async () => (await import('./config.js')).presets,
  quantize: async () => (await import('./quantize.js')).quantize,
} satisfies Record<CommandName, () => Promise<unknown>>;

type Command = (context: Context, given: Asked['given'], options: object) => Promise<Outcome>;

/** Arguments and options are those that program/ declares for the command. */
export async function commandOf({ name }: Asked): Promise<Command> {
  return (await commands[name]()) as Command;
}
