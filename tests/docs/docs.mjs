// npm run docs: every snippet of README.md and web/docs and every example is run against the packed package, and the API
// reference is made (dist/demo/docs, served with the page). JavaScript runs as a module, shell lines that start with `npx wasmquant` run as they are, JSON that looks
// like a config is checked. Guides must have titles, and links to files must lead somewhere. A line per file; exit code 1 when
// something fails.
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { rolldown } from 'rolldown';
import { weights, writeSafetensors } from '../bench/model_files.mjs';
import { twoLayers } from '../node/onnx_model.mjs';
import { install, pack } from '../package/packed.mjs';
import { buildCommandLine, buildLibrary, buildModule } from '../setup/build.mjs';
import { main, root } from '../setup/command.mjs';
import { buildReference } from './api_reference.mjs';
import { listProblems } from './core_lists.mjs';
import { runExamples } from './examples.mjs';
import { followGuide } from './extension.mjs';
import { fencesOf } from './fences.mjs';
import { after, given } from './given.mjs';

const sample = join(root, 'tests/files/tiny-llama');
const { values: options } = parseArgs({ options: { only: { type: 'string', default: '' } } });

/** Enough for 16 rows of 256 tokens of the sample's byte vocabulary. */
const prose = 'And the evening and the morning were the first day. In the beginning was the word. '.repeat(64);

const int4 = { dtype: 'int4', qscheme: 'per_group', group_size: 64, ch_axis: -1, symmetric: true };
const int8 = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
const inputs = { dtype: 'int8', qscheme: 'per_tensor', symmetric: true };
const exclude = ['lm_head'];
/** Configs that snippets name. */
const configs = {
  'awq.json': { global_quant_config: { weight: int4 }, exclude, algo_config: [{ name: 'awq' }] },
  'w8a8.json': { global_quant_config: { weight: int8, input_tensors: inputs }, exclude },
  'my-config.json': { global_quant_config: { weight: int4 }, exclude },
};

/** Markdown files of the project that people read, relative to the checkout. */
function pages() {
  const guides = readdirSync(join(root, 'web/docs')).filter((name) => name.endsWith('.md'));
  return ['README.md', ...guides.sort().map((name) => `web/docs/${name}`)].filter((name) =>
    name.includes(options.only),
  );
}

/**
 * What is wrong with a page besides its snippets: a guide without its title, a link to a file that is not there, a list that
 * is not the core's. The blank lines around titles are what keeps biome from making headings of them.
 */
function* problemsOf(page, markdown) {
  if (page.startsWith('web/docs/') && !/^---\n\ntitle: .+\n\n---\n/.test(markdown))
    yield 'does not begin with its title';
  for (const [, link] of markdown.matchAll(/\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)/g))
    if (!existsSync(join(root, page, '..', link))) yield `links to ${link}, which does not exist`;
  yield* listProblems(page, markdown);
}

/**
 * The folder that readers are told they have: the package, my-model (the sample), tokens, texts, activations, an ONNX
 * model, configs; in `later` what a first run makes of it.
 */
function reader(packed) {
  const app = install(packed, 'reader');
  const tool = 'node_modules/@huggingface/tokenizers';
  cpSync(join(root, tool), join(app, tool), { recursive: true });
  cpSync(sample, join(app, 'my-model'), { recursive: true });
  const tokens = 'tests/files/tiny-llama-reference/validation_tokens.safetensors';
  copyFileSync(join(root, tokens), join(app, 'tokens.safetensors'));
  for (const name of ['text.txt', 'sample.txt', 'held-out.txt']) writeFileSync(join(app, name), prose);
  writeFileSync(join(app, 'model.onnx'), twoLayers().bytes);
  for (const [name, config] of Object.entries(configs)) writeFileSync(join(app, name), JSON.stringify(config));
  const { tensors } = JSON.parse(command('npx', ['--no-install', 'wasmquant', 'inspect', 'my-model', '--json'], app));
  const linear = tensors.filter(({ layerType, layer }) => layerType === 'Linear' && layer !== 'lm_head');
  writeFileSync(join(app, 'layers.txt'), linear.map(({ layer, shape }) => `${layer} ${shape[1]}\n`).join(''));
  const inputs = linear.map(({ layer, shape }) => ({ name: `${layer}.input`, shape: [4, shape[1]] }));
  writeSafetensors(join(app, 'activations.safetensors'), inputs, weights(4 * 1024, 3));
  const make = ['quantize', 'my-model', '-o', 'later/my-model-int4', '--preset', 'int4_wo_128'];
  command('npx', ['--no-install', 'wasmquant', ...make], app);
  return app;
}

/** A fresh copy of the reader's folder for one snippet. */
function copyOf(app, packed, { given: names }) {
  const folder = mkdtempSync(join(packed.folder, 'snippet-'));
  for (const name of readdirSync(app))
    if (name !== 'node_modules' && name !== 'later') cpSync(join(app, name), join(folder, name), { recursive: true });
  symlinkSync(join(app, 'node_modules'), join(folder, 'node_modules'));
  if (names.includes('quantized') || names.includes('my-model-int4'))
    cpSync(join(app, 'later'), folder, { recursive: true });
  return folder;
}

function command(program, args, cwd) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: 'utf8', timeout: 300_000 });
  if (error) throw error;
  if (status !== 0) throw new Error(`exit code ${status}\n${stdout}${stderr}`);
  return stdout;
}

/** `await using` is newer than Node 20: the bundler says it in older words. */
async function runModule(app, name, code) {
  const source = join(app, `${name}.source.mjs`);
  writeFileSync(source, code);
  const external = /^(wasmquant|node:|@huggingface)/;
  const bundle = await rolldown({ input: source, external, transform: { target: 'node20' }, logLevel: 'silent' });
  const file = join(app, `${name}.mjs`);
  await bundle.write({ file, format: 'esm' });
  await bundle.close();
  command(process.execPath, [file], app);
}

function runShell(app, code) {
  const lines = code.split('\n').filter((line) => line.startsWith('npx wasmquant'));
  for (const line of lines) command('bash', ['-c', line.replace(/^npx /, 'npx --no-install ')], app);
  return lines.length;
}

async function runFence(app, page, { language, code, given: names }, index) {
  if (language === 'js') {
    const before = names.map((name) => {
      if (!(name in given)) throw new Error(`nothing is given as "${name}" (tests/docs/given.mjs)`);
      return given[name];
    });
    const last = names.filter((name) => after[name]).map((name) => after[name]);
    await runModule(app, `${page.replace(/\W+/g, '_')}_${index}`, [...before, code, ...last].join('\n'));
    return 1;
  }
  if (language === 'sh') return runShell(app, code);
  if (language === 'json' && /_quant_config"/.test(code)) {
    writeFileSync(join(app, 'config.json'), code);
    command('npx', ['--no-install', 'wasmquant', 'config', 'check', 'config.json'], app);
    return 1;
  }
  return 0;
}

main(async () => {
  buildModule();
  buildLibrary();
  buildCommandLine();
  const packed = pack();
  let passed = 0;
  let failed = 0;
  try {
    const app = reader(packed);
    for (const page of pages()) {
      let ran = 0;
      const unrun = [];
      const saved = [];
      const markdown = readFileSync(join(root, page), 'utf8');
      for (const problem of problemsOf(page, markdown)) {
        failed += 1;
        process.stdout.write(`${page} FAILED  ${problem}\n`);
      }
      for (const [index, fence] of fencesOf(markdown).entries()) {
        if (fence.unrun) {
          unrun.push(`line ${fence.line}: ${fence.unrun}`);
          continue;
        }
        try {
          if (fence.saved) {
            writeFileSync(join(app, fence.saved), fence.code);
            saved.push(join(app, fence.saved));
          }
          const count = await runFence(copyOf(app, packed, fence), page, fence, index);
          ran += count;
          passed += count;
        } catch (error) {
          failed += 1;
          process.stdout.write(`${page}:${fence.line} FAILED  ${error.message}\n`);
        }
      }
      for (const file of saved) rmSync(file);
      process.stdout.write(`${page.padEnd(34)} ${ran} ran${unrun.map((note) => `\n    not run, ${note}`).join('')}\n`);
    }
    await runExamples(packed, options.only, (name, error) => {
      if (error) failed += 1;
      else passed += 1;
      process.stdout.write(error ? `${name} FAILED  ${error.message}\n` : `${name.padEnd(34)} ran\n`);
    });
    if ('web/docs/extend.md'.includes(options.only)) {
      try {
        const files = followGuide();
        passed += files.length;
        process.stdout.write(`${'extend.md'.padEnd(34)} followed: ${files.length} snippets in ${files.join(', ')}\n`);
      } catch (error) {
        failed += 1;
        process.stdout.write(`extend.md FAILED  ${error.message}\n`);
      }
    }
    if (!options.only) process.stdout.write(`API reference: ${buildReference()} pages in dist/demo/docs\n`);
  } finally {
    packed.remove();
  }
  process.stdout.write(`\ndocs: ${passed} passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
});
