// Folders that mlx-lm converts and quantizes, of families that transformers has, too: written again, transformers loads the original's weights.
import { join } from 'node:path';
import { root } from '../../setup/command.mjs';
import { CaseRow } from '../case_row.mjs';

/** What ours refuses, by the text of its error. */
const listed = [
  [/leaves out/, 'mlx-lm leaves out tensors that the class needs: the folder is refused'],
  [/issues during automatic conversion|loader-limit|transformers/, 'transformers loads no such compressed file'],
];

/** Runs a script that prints a line for each case; refusals of `known` do not count. */
async function checked(environment, script, folder, only, row, known) {
  const args = [folder, join(root, 'dist/cli.js'), ...(only ? [only] : [])];
  for await (const { name, refused, problem } of environment.lines(script, ...args)) {
    if (refused && known.some(([text]) => text.test(refused))) row.refused++;
    else row.add(name, [refused, problem].filter(Boolean));
  }
  row.note = known.map(([, text]) => text).join('; ');
  return row;
}

/** Rows of the table of `npm run test:peers`. */
export async function checkMlx(environment, _quantizer, folder, { only }) {
  const read = new CaseRow('folders of mlx-lm: transformers loads the weights of the original, and misses none');
  const written = new CaseRow('folders for mlx-lm: its logits are those of the original, as near as the bits allow');
  return [
    await checked(environment, 'write.py', folder, only, written, []),
    await checked(environment, 'run.py', folder, only, read, listed),
  ];
}
