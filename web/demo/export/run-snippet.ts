// Config, model and calibration of a run, for the lines that repeat it.
import { needsText } from '../configure/choice';
import { needsActivations } from '../configure/static-inputs';
import { feeds } from '../feeds/feeds';
import { opened } from '../open/opened';
import type { FinishedRun } from '../run/runs';
import type { Snippet } from './snippets';

export function snippetOf({ choice, config }: Pick<FinishedRun, 'choice' | 'config'>): Snippet {
  const given = needsActivations(config) ? feeds() : null;
  const calibration = given
    ? { feeds: given.groups.map((group) => group.map(({ name }) => name)) }
    : needsText(config)
      ? ('text' as const)
      : null;
  return { choice, location: opened.value?.location ?? 'model', calibration };
}
