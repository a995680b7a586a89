// npm run test:gguf-families [-- NAME...]: tiny checkpoints of model families (tests/families), converted to GGUF by llama.cpp's own converter and by
// the command line, in F32, F16 and BF16; and to Q8_0 and Q4_K_M by llama-quantize from the converter's file. Tensors have the same bytes, keys are
// equal or differ as compare.py lists, and llama.cpp computes the same logits with both files. A line a family; exit code 1 for any difference.
//   --part 2/6|date/6: every sixth family   --keep: leave the files, say where
// Needs what tests/interop/peers.sh makes.
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { inPart } from '../families/part.mjs';
import { LlamaCpp, Server } from '../peers/llamacpp/server.mjs';
import { buildAll } from '../setup/build.mjs';
import { main, root } from '../setup/command.mjs';
import { families, projectors, refused } from './cases.mjs';
import { pngOf } from './png.mjs';

const peers = join(root, 'tests/interop/peers.sh');
const plain = ['f32', 'f16', 'bf16'];
const blocks = ['q8_0', 'q4_k_m'];
const vocabulary = 288;
/** Behind a family's name: the file for images, of the same checkpoint. */
const mmproj = ':mmproj';
const prompt = [5, 17, 80, 3, 200, 41];
const spaces = { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 };

function python(script, ...args) {
  return spawnSync(peers, ['run', 'python3', script, ...args], spaces);
}

/** Our file of a checkpoint, or what the command says. The model is called "tiny": llama.cpp treats some names in a way of their own. */
function convert(folder, recipe, file, ...options) {
  const out = `${file}.folder`;
  const named = join(dirname(folder), 'tiny');
  rmSync(named, { force: true });
  symlinkSync(folder, named);
  const command = [
    join(root, 'dist/cli.js'),
    'quantize',
    named,
    '-o',
    out,
    '--format',
    'gguf',
    '--preset',
    recipe,
    '--threads',
    '0',
    ...options,
  ];
  const { status, stderr } = spawnSync(process.execPath, command, spaces);
  const [made] = existsSync(out) ? readdirSync(out).filter((name) => name.endsWith('.gguf')) : [];
  if (status === 0 && made) renameSync(join(out, made), file);
  rmSync(out, { recursive: true, force: true });
  return status === 0 && made ? '' : stderr.trim();
}

async function logitsOf(file) {
  const server = await Server.start(file);
  try {
    return (await server.next(prompt, vocabulary)).logits;
  } finally {
    await server.stop();
  }
}

/** What differs between the logits of two files, by more than `tolerance`. */
async function logitProblem(theirs, ours, tolerance) {
  let expected;
  try {
    expected = await logitsOf(theirs);
  } catch (error) {
    return { note: `llama.cpp does not run the converter's file: ${error.message.slice(-160)}` };
  }
  let actual;
  try {
    actual = await logitsOf(ours);
  } catch (error) {
    return { problem: `llama.cpp does not run our file: ${error.message.slice(-160)}` };
  }
  const isSame = actual.every((value, i) => Math.abs(value - expected[i]) <= tolerance);
  return isSame ? {} : { problem: 'other logits' };
}

class Family {
  constructor(work, name) {
    this.name = name;
    this.isProjector = name.endsWith(mmproj);
    this.checkpoint = name.replace(mmproj, '');
    this.folder = join(work, this.checkpoint);
    this.problems = [];
    this.notes = [];
  }

  file(recipe, owner) {
    return `${this.folder}${this.isProjector ? '.mmproj' : ''}.${recipe}.${owner}.gguf`;
  }

  edit() {
    if (this.isProjector) return this.#addProcessor();
    const path = join(this.folder, 'config.json');
    let text = readFileSync(path, 'utf8');
    // As text: 1.0 stays a float for Python.
    for (const [key, value] of Object.entries(families[this.name])) {
      const [name, object] = key.split('.').reverse();
      text = text.replace(new RegExp(`^  "${key}": (\\[[^\\]]*\\]|[^\n]*?),?\n`, 'm'), '');
      text = text.replace(
        object ? `"${object}": {` : '{',
        (start) => `${start}\n  "${name}": ${JSON.stringify(value)},`,
      );
    }
    writeFileSync(path, text);
  }

  #addProcessor() {
    writeFileSync(join(this.folder, 'preprocessor_config.json'), JSON.stringify(projectors[this.checkpoint]));
    // What of a tokenizer the converter asks for one kind of tower.
    const token = { added_tokens_decoder: { 280: { content: '[IMG_BREAK]' } } };
    if (this.checkpoint === 'mistral3')
      writeFileSync(join(this.folder, 'tokenizer_config.json'), JSON.stringify(token));
  }

  /** Pairs of files to be compared. */
  write(llamaCpp) {
    const pairs = [];
    // llama-quantize takes no blocks that are there already.
    for (const recipe of this.name.endsWith('-mxfp4') ? plain : [...plain, ...blocks]) {
      const theirs = this.file(recipe, 'theirs');
      if (blocks.includes(recipe) && existsSync(this.file('f32', 'theirs')))
        llamaCpp.tool('llama-quantize', this.file('f32', 'theirs'), theirs, recipe.toUpperCase(), '1');
      const problem = convert(
        this.folder,
        recipe,
        this.file(recipe, 'ours'),
        ...(this.isProjector ? ['--mmproj'] : []),
      );
      if (problem) this.problems.push(`${recipe}: ${problem.slice(-300)}`);
      else if (existsSync(theirs)) pairs.push({ family: this, recipe, theirs, ours: this.file(recipe, 'ours') });
      else this.problems.push(`${recipe}: the converter wrote nothing`);
    }
    return pairs;
  }
}

function compare(pairs) {
  const input = pairs.map(({ recipe, theirs, ours }) => JSON.stringify({ recipe, theirs, ours })).join('\n');
  const { status, stdout, stderr } = spawnSync(peers, ['run', 'python3', 'tests/gguf_families/compare.py'], {
    ...spaces,
    input,
  });
  const results = stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
  if (status !== 0 || results.length !== pairs.length) throw new Error(`compare.py: ${stderr.slice(-500)}`);
  for (const [i, { problems, differences }] of results.entries()) {
    pairs[i].family.problems.push(...problems.map((problem) => `${pairs[i].recipe}: ${problem}`));
    if (pairs[i].recipe === 'f32') pairs[i].family.notes.push(...differences);
  }
}

/** What is wrong if llama.cpp does not answer to an image with our files. */
function seen(family) {
  const [model, image] = [`${family.folder}.seen.gguf`, `${family.folder}.png`];
  const problem = convert(family.folder, 'f16', model);
  if (problem) return { problem: problem.slice(-300) };
  writeFileSync(image, pngOf(96));
  const question = ['-p', 'a', '-n', '2', '-t', '1', '-c', '512', '--temp', '0', '--chat-template', 'chatml'];
  const sees = (owner) => {
    const files = ['-m', model, '--mmproj', family.file('f16', owner), '--image', image];
    return spawnSync(peers, ['run', 'llama-mtmd-cli', ...files, ...question], spaces).status === 0;
  };
  if (sees('ours')) return {};
  if (sees('theirs')) return { problem: "llama.cpp sees nothing with our file, but with the converter's" };
  return { note: "llama.cpp does not run the converter's file" };
}

/** Compares the logits of a family whose files are compared; prints its line. True if nothing is wrong. */
async function check(family, pairs) {
  if (pairs[0]?.recipe === 'f32' && !family.isProjector) {
    const isRounded = family.notes.some((note) => note.endsWith('which torch computes in float32'));
    const { problem, note } = await logitProblem(pairs[0].theirs, pairs[0].ours, isRounded ? 1e-4 : 0);
    if (problem) family.problems.push(problem);
    if (note) family.notes.push(note);
  }
  if (pairs[0] && family.isProjector) {
    const { problem, note } = seen(family);
    if (problem) family.problems.push(problem);
    if (note) family.notes.push(note);
  }
  const outcome = family.problems.length === 0 ? `= ${family.notes.join('; ')}` : `W ${family.problems.join('; ')}`;
  process.stdout.write(`${family.name.padEnd(20)} ${outcome.slice(0, 600)}\n`);
  return family.problems.length === 0;
}

/** A family without a row is refused, by its name, with what can be written instead. */
function checkRefused(work, name) {
  const said = convert(join(work, name), 'f16', join(work, `${name}.gguf`));
  const isNamed = said.includes(`models of type "${name}" cannot be written to GGUF`);
  process.stdout.write(`${name.padEnd(20)} ${isNamed ? 'refused' : `W ${said.slice(0, 300) || 'is written'}`}\n`);
  return isNamed;
}

await main(async () => {
  const options = { part: { type: 'string' }, keep: { type: 'boolean' } };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const names =
    positionals.length > 0
      ? positionals
      : inPart([...Object.keys(families), ...Object.keys(projectors).map((name) => name + mmproj)], values.part);
  buildAll();
  const llamaCpp = new LlamaCpp('llama.cpp');
  const work = mkdtempSync(join(tmpdir(), 'gguf-families-'));
  let wrong = 0;
  try {
    const others = positionals.length > 0 ? [] : refused;
    const made = python(
      'tests/families/make_families.py',
      work,
      ...new Set(names.map((name) => name.replace(mmproj, ''))),
      ...others,
    );
    if (made.status !== 0) throw new Error(`make_families.py: ${made.stdout.slice(-500)}${made.stderr.slice(-500)}`);
    const all = names.map((name) => new Family(work, name));
    for (const family of all) family.edit();
    const { status, stderr } = python('tests/gguf_families/convert.py', work, plain.join(), ...names);
    if (status !== 0) throw new Error(`convert.py: ${stderr.slice(-500)}`);
    const pairs = all.map((family) => family.write(llamaCpp));
    if (pairs.flat().length > 0) compare(pairs.flat()); // at once: Python starts slowly
    for (const [i, family] of all.entries()) wrong += (await check(family, pairs[i])) ? 0 : 1;
    for (const name of others) wrong += checkRefused(work, name) ? 0 : 1;
    process.stdout.write(`${names.length} families, ${wrong} wrong\n`);
  } finally {
    if (values.keep) process.stdout.write(`files: ${work}\n`);
    else rmSync(work, { recursive: true });
  }
  return wrong > 0 ? 1 : 0;
});
