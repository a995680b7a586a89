// Lists in guides of what the core knows: nothing is missing, nothing unknown.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/command.mjs';

/** Families of the core's tables (bindings/schema/main.cpp), in parentheses or as the end of a sentence. */
function* familyProblems(markdown, use) {
  const program = join(root, 'build/wasm/wasmquant_schema.cjs');
  const { families } = JSON.parse(execFileSync(process.execPath, [program], { encoding: 'utf8' }));
  if (!new RegExp(`(\\(|: )${families[use]}[).]`).test(markdown.replaceAll('\n', ' ')))
    yield `does not list the families ${families[use]}`;
}

/** The names that begin the items of the list of dtypes; "`int2` … `int8`" are all from the one to the other. */
function dtypesOf(markdown) {
  const items = [...markdown.matchAll(/^- (`.*?): /gm)].map(([, names]) => names.split(' with ')[0]);
  return items.flatMap((names) =>
    [...names.matchAll(/`([a-z]+)(\d+)` … `\1(\d+)`|`(\w+)`/g)].flatMap(([, kind, first, last, name]) =>
      name ? [name] : Array.from({ length: last - first + 1 }, (_, i) => `${kind}${Number(first) + i}`),
    ),
  );
}

function* dtypeProblems(markdown) {
  const schema = JSON.parse(readFileSync(join(root, 'dist/schema/quark.json'), 'utf8'));
  const [{ enum: names }] = schema.$defs.QTensorConfig.properties.dtype.anyOf; // beside it, names in other spellings
  const known = names.filter((name) => name !== null);
  const listed = dtypesOf(markdown);
  for (const name of known) if (!listed.includes(name)) yield `does not list the dtype ${name}`;
  for (const name of listed) if (!known.includes(name)) yield `lists the dtype ${name}, which the core does not know`;
}

/** What is wrong with the lists of a page, one sentence each. */
export function* listProblems(page, markdown) {
  if (page === 'web/docs/measure.md') for (const use of ['forward', 'encoders']) yield* familyProblems(markdown, use);
  if (page === 'web/docs/formats.md') yield* familyProblems(markdown, 'gguf');
  if (page === 'web/docs/dtypes.md') yield* dtypeProblems(markdown);
}
