/** Where a command is done: at once in this thread where that is short, else in a thread of its own. */
import { statSync } from 'node:fs';
import type { Asked, CommandName } from '../asked.js';
import { optionsOfSmall } from './small.js';

export type Start = (name: CommandName, given: Asked['given'], options: object) => Promise<void>;

/** A config that is read in no time. */
const kShortBytes = 2 ** 20;

const isShort = (path: string | undefined) =>
  path === undefined || (statSync(path, { throwIfNoEntry: false })?.size ?? 0) <= kShortBytes;

/** Whether nothing takes so long that a signal would have to wait. */
function isSoonDone({ name, given: [path] }: Asked): boolean {
  switch (name) {
    case 'explain':
    case 'presets':
      return true;
    case 'formats':
      return path === undefined;
    case 'checkConfig':
    case 'convertConfig':
      return path !== '-' && isShort(path);
    default:
      return false;
  }
}

export const start: Start = async (name, given, options) => {
  const asked = { name, given, options };
  const short = isSoonDone(asked) ? options : optionsOfSmall(asked);
  if (!short && (await import('./thread.js')).doInThread(asked)) return;
  await (await import('../execute.js')).execute({ ...asked, options: short ?? options });
};
