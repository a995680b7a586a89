// Folders that mlx-lm converts and quantizes, of families that transformers has, too: written again, transformers loads the original's weights.
import { join } from 'node:path';
import { root } from '../../setup/command.mjs';
import { CaseRow } from '../case_row.mjs';

/** What ours refuses, by the text of its error. */
const listed = [
  [/leaves out/, 'mlx-lm leaves out tensors that the class needs: the folder is refused'],
  [/issues during automatic conversion|loader-limit|transformers/, 'transformers loads no such compressed file'],
];

/** Rows of the table of `npm run test:peers`. */
export async function checkMlx(environment, _quantizer, folder, { only }) {
  const row = new CaseRow('folders of mlx-lm: transformers loads the weights of the original, and misses none');
  const args = [folder, join(root, 'dist/cli.js'), ...(only ? [only] : [])];
  for await (const { name, refused, problem } of environment.lines('run.py', ...args)) {
    const known = refused && listed.find(([text]) => text.test(refused));
    if (known) row.refused++;
    else row.add(name, [refused, problem].filter(Boolean));
  }
  row.note = listed.map(([, text]) => text).join('; ');
  return [row];
}
