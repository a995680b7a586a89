// npm run docs: every snippet of README.md and web/docs and every example is run against the packed package, and the site of guides
// and API is made (dist/demo/docs, served with the page). JavaScript runs as a module, shell lines that start with `npx wasmquant`
// run as they are, JSON that looks like a config is checked. Guides must have titles, and links to files must lead somewhere. A
// line per file; exit code 1 when something fails.
//   --only TEXT: pages and examples whose name has it
//   --runtimes [--only TEXT]: instead, the pages of web/docs/run with Python and llama.cpp's tools (peer_guides.mjs)
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { rolldown } from 'rolldown';
import { pack } from '../package/packed.mjs';
import { buildAll } from '../setup/build.mjs';
import { main, root } from '../setup/command.mjs';
import { listProblems } from './core_lists.mjs';
import { runExamples } from './examples.mjs';
import { followGuide } from './extension.mjs';
import { fencesOf } from './fences.mjs';
import { figureProblems } from './figures.mjs';
import { after, given } from './given.mjs';
import { linkProblems } from './links.mjs';
import { runPeerGuides } from './peer_guides.mjs';
import { command, copyOf, program, reader, refusal, runShell } from './reader.mjs';
import { buildSite } from './site.mjs';

const { values: options } = parseArgs({
  options: { only: { type: 'string', default: '' }, runtimes: { type: 'boolean', default: false } },
});

/** Markdown files of the project that people read, relative to the checkout. */
function pages() {
  const guides = readdirSync(join(root, 'web/docs'), { recursive: true }).filter((name) => name.endsWith('.md'));
  return ['README.md', ...guides.sort().map((name) => `web/docs/${name}`)].filter((name) =>
    name.includes(options.only),
  );
}

/**
 * What is wrong with a page besides its snippets: a guide without its title, a link to a file that is not there, a list that
 * is not the core's. The blank lines around titles are what keeps biome from making headings of them.
 */
function* problemsOf(page, markdown) {
  if (page.startsWith('web/docs/') && !/^---\n\ntitle: .+\n(group: .+\n)?\n---\n/.test(markdown))
    yield 'does not begin with its title';
  yield* linkProblems(page, markdown);
  yield* listProblems(page, markdown);
  yield* figureProblems(markdown);
  for (const { language, line, unrun, peer } of fencesOf(markdown))
    if (/^(bash|ts|python|yaml)$/.test(language) && !unrun && !peer)
      yield `line ${line}: nothing runs this block; say why in <!-- unrun: ... --> before it`;
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

async function runFence(app, page, { language, code, given: names, refused, example }, index) {
  if (example) {
    const text = readFileSync(join(root, 'web/examples', example), 'utf8');
    if (!text.includes(code)) throw new Error(`web/examples/${example} does not have these lines`);
    return 1;
  }
  if (refused) return refusal(app, code, refused);
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
  if (language === 'json' && /"(\w+_quant_config|dialect)"/.test(code)) {
    writeFileSync(join(app, 'config.json'), code);
    command(program, ['config', 'check', 'config.json'], app);
    return 1;
  }
  return 0;
}

main(async () => {
  buildAll();
  const packed = pack();
  if (options.runtimes) return runPeerGuides(packed, options.only);
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
        if (fence.unrun || fence.peer) {
          unrun.push(
            `line ${fence.line}: ${fence.unrun ?? `Python, by npm run docs -- --runtimes --only ${fence.peer}`}`,
          );
          continue;
        }
        try {
          if (fence.saved) {
            writeFileSync(join(app, fence.saved), fence.code);
            saved.push(join(app, fence.saved));
          }
          const count = await runFence(copyOf(app, packed, fence.given), page, fence, index);
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
    if (!options.only) process.stdout.write(`site: ${await buildSite()} pages in dist/demo/docs\n`);
  } finally {
    packed.remove();
  }
  process.stdout.write(`\ndocs: ${passed} passed, ${failed} failed\n`);
  return failed === 0 ? 0 : 1;
});
