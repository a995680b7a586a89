// node tests/texts/sample.mjs [COUNT] [--seed N] [--all]: texts that people read, chosen at random, with their places: for reading them
// aloud. Texts are string literals of four words or more in sources of the core, the library, the command line and the page.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../setup/command.mjs';
import { filesBelow } from '../setup/source_files.mjs';

const folders = ['src', 'bindings', 'web/lib', 'web/cli', 'web/demo', 'web/present'];
const kinds = /\.(cpp|h|def|ts|tsx)$/;
const fewestWords = 4;

/** Comments as blanks, so that every place keeps its offset. */
const withoutComments = (text) =>
  text.replace(
    /("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)|\/\/.*|\/\*[\s\S]*?\*\//g,
    (match, literal) => (literal ? match : match.replace(/[^\n]/g, ' ')),
  );

/** Literals that stand next to each other, or are joined by +, are one text. */
function textsOf(file) {
  const code = withoutComments(readFileSync(join(root, file), 'utf8'));
  const literal = /"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`/g;
  const texts = [];
  let end = -1;
  for (const match of code.matchAll(literal)) {
    const text = match[1] ?? match[2] ?? match[3];
    const gap = end < 0 ? 'x' : code.slice(end, match.index);
    if (/^\s*(\+\s*)?$/.test(gap)) texts.at(-1).text += text;
    else texts.push({ file, line: code.slice(0, match.index).split('\n').length, text });
    end = match.index + match[0].length;
  }
  return texts;
}

const isRead = ({ text }) =>
  text.split(/\s+/).filter((word) => /^[\p{L}'’“”(),.:;{}$-]{2,}$/u.test(word)).length >= fewestWords &&
  !/[=<>]{2}|=>|^\.\//.test(text);

/** Numbers in [0, 1), the same for a seed. */
function* numbers(seed) {
  for (let state = seed >>> 0; ; ) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

const { values, positionals } = parseArgs({
  options: { seed: { type: 'string', default: '1' }, all: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const texts = folders
  .flatMap((folder) => filesBelow(folder, kinds))
  .filter((file) => !file.includes('/generated/'))
  .sort()
  .flatMap(textsOf)
  .filter(isRead);
const random = numbers(Number(values.seed));
const count = values.all ? texts.length : Number(positionals[0] ?? 20);
const chosen = values.all ? texts : [];
for (const left = [...texts]; chosen.length < count && left.length > 0; )
  chosen.push(...left.splice(Math.floor(random.next().value * left.length), 1));
for (const { file, line, text } of chosen) process.stdout.write(`${file}:${line}\n    ${text.replace(/\s+/g, ' ')}\n`);
process.stdout.write(`${chosen.length} of ${texts.length} texts\n`);
