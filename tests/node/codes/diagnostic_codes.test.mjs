// Codes of errors and diagnostics (src/core/codes/error.def, src/core/codes/diagnostics.def): each is reported by a source, provoked by
// a case of codes/, explained by the command line and by the guide.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { builtCodes, codeGuide } from '../../../bindings/schema/codes.mjs';
import { coreErrorCodes, libraryErrorCodes } from '../../../dist/node.js';
import { root } from '../../setup/command.mjs';
import { filesBelow } from '../../setup/source_files.mjs';
import { quantizerFor } from '../scratch.mjs';
import { configs, quark, weight } from './config_cases.mjs';
import { errorCases } from './error_cases.mjs';
import { onnxCases } from './onnx_cases.mjs';
import { planCases } from './plan_cases.mjs';
import { Provoker } from './provoker.mjs';
import { runCases } from './run_cases.mjs';

const { errors, diagnostics: remarks } = builtCodes();
const severitiesOf = new Map([
  ...errors.map(({ name }) => [name, 'error, warning']),
  ...remarks.map(({ name, severities }) => [name, severities]),
]);

/** `'code'` or `"code"` in a text; of lines of native tests also `warning code /place`. */
const names = (text, code) =>
  new RegExp(`['"\`]${code}['"\`]|(error|warning|note) ${code}[ "\\\\]|"${code} `).test(text);
const textOf = (folders, pattern) =>
  folders
    .flatMap((folder) => filesBelow(folder, pattern))
    .filter((file) => !file.includes('/generated/') && file !== 'tests/node/codes/diagnostic_codes.test.mjs')
    .map((file) => readFileSync(join(root, file), 'utf8'))
    .join('\n');

test('every code of the tables is reported by a source', () => {
  const sources = textOf(['src', 'bindings', 'web/lib', 'web/cli'], /\.(cpp|h|ts)$/);
  const enumerated = (code) => sources.includes(`ErrorCode::${code.replaceAll('-', '_')}`);
  for (const { name } of [...errors, ...remarks])
    assert.ok(names(sources, name) || enumerated(name), `${name} is in the table, and no source reports it`);
});

test('every code of a config is provoked by one, with a severity of the table', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const [code, config] of Object.entries(configs)) {
    const found = quantizer.checkConfig(config);
    assert.ok(
      found.some((diagnostic) => diagnostic.code === code),
      `${code}: ${JSON.stringify(found)}`,
    );
    for (const { code: known, severity } of found)
      assert.ok(severitiesOf.get(known)?.split(', ').includes(severity), `${known} is of severity ${severity}`);
  }
  const own = quark(weight(), { dialect: 'quark' });
  assert.equal(quantizer.checkConfig(own, { dialect: 'awq' })[0].code, 'dialect-mismatch');
});

for (const [code, provoke] of Object.entries({ ...planCases, ...onnxCases, ...runCases }))
  test(`${code}: its case reports it, with a severity of the table`, async (t) => {
    const found = await provoke(new Provoker(t, await quantizerFor(t)));
    const severities = found.filter((diagnostic) => diagnostic.code === code).map(({ severity }) => severity);
    assert.ok(severities.length > 0, JSON.stringify(found));
    for (const severity of severities) assert.ok(severitiesOf.get(code)?.split(', ').includes(severity), severity);
  });

for (const [code, provoke] of Object.entries(errorCases))
  test(`${code}: its case fails with it`, { timeout: 60_000 }, async (t) => {
    const provoker = new Provoker(t, await quantizerFor(t));
    const found = await (async () => provoke(provoker))().catch((error) => error.code ?? error);
    assert.equal(found, code);
  });

test('every code of the tables has a case', () => {
  const cases = { ...configs, ...planCases, ...onnxCases, ...runCases, 'dialect-mismatch': true };
  const sorted = (names) => [...names].sort();
  assert.deepEqual(
    sorted(remarks.map(({ name }) => name)).filter((name) => !(name in cases)),
    [],
  );
  assert.deepEqual(sorted(Object.keys(errorCases)), sorted(errors.map(({ name }) => name)));
  for (const name of Object.keys(cases)) assert.ok(severitiesOf.has(name), `${name} is in no table`);
});

test('the types have the codes of the tables', () => {
  const of = (reporter) => errors.filter((row) => row.reporter === reporter).map(({ name }) => name);
  assert.deepEqual(coreErrorCodes, of('core'));
  assert.deepEqual(libraryErrorCodes, of('library'));
  const twice = [...errors, ...remarks].map(({ name }) => name).filter((name, i, all) => all.indexOf(name) !== i);
  assert.deepEqual(twice, []);
});

test('every text is a sentence, or two', () => {
  for (const { name, meaning, advice } of [...errors, ...remarks])
    for (const text of [meaning, advice])
      assert.match(text, /^([A-Z`]|wasmquant|transformers|vLLM|aihwkit|llama\.cpp|r3).*\.$/, `${name}: ${text}`);
});

test('the guide is made of the tables: node bindings/schema/codes.mjs writes it', () => {
  assert.equal(
    readFileSync(join(root, 'web/docs/diagnostics.md'), 'utf8'),
    codeGuide({ errors, diagnostics: remarks }),
  );
});

const cli = join(root, 'dist/cli.js');

test('explain prints the rows of a code, all codes, and similar ones of a wrong code', () => {
  const run = (...args) => execFileSync(process.execPath, [cli, 'explain', ...args], { encoding: 'utf8' });
  const { codes } = JSON.parse(run('--json'));
  assert.deepEqual(
    codes.map(({ code }) => code),
    [...errors, ...remarks].map(({ name }) => name),
  );
  const row = remarks.find(({ name }) => name === 'pattern-unused');
  const text = run('pattern-unused');
  for (const part of [row.name, row.meaning, row.advice]) assert.ok(text.includes(part), part);
  const wrong = spawnSync(process.execPath, [cli, 'explain', 'pattern-used'], { encoding: 'utf8' });
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /there is no code "pattern-used"[\s\S]*did you mean pattern-invalid, pattern-unused/);
});
