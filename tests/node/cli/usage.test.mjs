// Help, version, wrong usage: exit codes, streams, and what is suggested.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { cli, cliJson, tinyLlama } from './process.mjs';

test('help goes to stdout and names every command', async () => {
  const { code, stdout, stderr } = await cli(['--help']);
  assert.equal(code, 0);
  assert.equal(stderr, '');
  for (const command of ['inspect', 'plan', 'quantize', 'compare', 'config'])
    assert.match(stdout, new RegExp(`^  ${command}`, 'm'));
});

test('the help of quantize names every option of the contract', async () => {
  const { code, stdout } = await cli(['quantize', '--help']);
  assert.equal(code, 0);
  const whole = await cli(['quantize', '--help-all', 'no-such-model']);
  assert.deepEqual([whole.code, whole.stderr], [0, '']);
  const optionsOf = (text) => [...text.matchAll(/^ {2}(?:-\w, )?--([\w-]+)/gm)].map(([, name]) => name);
  const [usual, all] = [optionsOf(stdout), optionsOf(whole.stdout)];
  assert.ok(usual.length <= 18, `${usual.length}`);
  assert.deepEqual(
    all.filter((name) => usual.includes(name)),
    usual,
  );
  for (const rare of ['pure', 'shards', 'qdq', 'imatrix', 'no-color'])
    assert.ok(all.includes(rare) && !usual.includes(rare), rare);
  const options = [
    '--output',
    '--preset',
    '--config',
    '--format',
    '--exclude',
    '--layer',
    '--calibration',
    '--threads',
    '--memory',
  ];
  for (const option of [...options, '--report', '--force', '--json', '--quiet', '--help-all'])
    assert.ok(stdout.includes(option), option);
});

test('version is that of the package', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'));
  assert.deepEqual(await cli(['--version']), { code: 0, signal: null, stdout: `${version}\n`, stderr: '' });
});

const wrong = {
  'no command': [[], /Usage: wasmquant/],
  'no subcommand of config': [['config'], /Usage: wasmquant config/],
  'unknown command': [['insect', 'x'], /did you mean inspect\?/],
  'unknown option': [['inspect', tinyLlama, '--al'], /did you mean --all\?/],
  'missing model': [['inspect'], /missing required argument 'model'/],
  'too many arguments': [['inspect', 'a', 'b'], /too many arguments/],
  'unknown format': [['plan', tinyLlama, '-p', 'int8', '-f', 'zip'], /compressed-tensors, quark/],
  'preset and config': [['plan', tinyLlama, '-p', 'int8', '-c', '-'], /cannot be used with/],
  'neither preset nor config': [['plan', tinyLlama], /--preset NAME or --config FILE[\s\S]*usual presets: int8/],
  'unknown preset': [
    ['plan', tinyLlama, '-p', 'int9'],
    /"int9" is not one of the \d+ presets[\s\S]*did you mean "int8"\?/,
  ],
  'int4, which is no preset': [
    ['plan', tinyLlama, '-p', 'int4'],
    /"int4" is not one of the \d+ presets[\s\S]*int4_wo_128 is the usual choice/,
  ],
  'unknown recipe': [
    ['plan', tinyLlama, '-p', 'q4km', '-f', 'gguf'],
    /"q4km" is not one of the \d+ presets[\s\S]*did you mean "q4_k_m"\?/,
  ],
  'unknown preset of --layer': [
    ['plan', tinyLlama, '-p', 'int8', '-l', '*=fp9'],
    /"fp9" is not one of the \d+ presets/,
  ],
  '--layer without preset': [['plan', tinyLlama, '-p', 'int8', '-l', '*.q_proj='], /GLOB=PRESET/],
  '--layer without =': [['plan', tinyLlama, '-p', 'int8', '-l', 'q_proj'], /GLOB=PRESET/],
  'empty --exclude': [['plan', tinyLlama, '-p', 'int8', '-x', ''], /glob/],
  'threads below zero': [['quantize', tinyLlama, '-o', 'x', '-p', 'int8', '-t', '-1'], /whole number/],
  'more threads than the library takes': [
    ['quantize', tinyLlama, '-o', 'x', '-p', 'int8', '-t', '257'],
    /from 0 to 256/,
  ],
  'threads not a number': [['quantize', tinyLlama, '-o', 'x', '-p', 'int8', '-t', '2x'], /whole number/],
  'memory without a unit that exists': [['quantize', tinyLlama, '-o', 'x', '-p', 'int8', '-m', '3Q'], /256M/],
  'memory of nothing': [['quantize', tinyLlama, '-o', 'x', '-p', 'int8', '-m', '0'], /256M/],
  'unknown dialect': [['config', 'convert', '-', '--to', 'latin'], /quark, brevitas/],
};
for (const [name, [args, message]] of Object.entries(wrong)) {
  test(`wrong usage: ${name}`, async () => {
    const { code, stdout, stderr } = await cli(args);
    assert.equal(code, 2, stderr);
    assert.equal(stdout, '');
    assert.match(stderr, message);
    assert.doesNotMatch(stderr, /^\s+at /m, 'no stack trace');
  });
}

test('wrong usage with --json is one document on stdout', async () => {
  for (const args of [['insect'], ['inspect'], ['plan', tinyLlama], ['plan', tinyLlama, '-p', 'int9'], []]) {
    const { code, stderr, document } = await cliJson(args);
    assert.equal(code, 2);
    assert.equal(stderr, '');
    assert.deepEqual(Object.keys(document), ['error']);
    assert.equal(document.error.code, 'usage');
    assert.ok(document.error.message.length > 0);
  }
});

test('a missing model', async () => {
  const { code, stdout, stderr } = await cli(['inspect', 'no-such-model']);
  assert.equal(code, 1);
  assert.equal(stdout, '');
  assert.match(stderr, /no-such-model/);
  assert.doesNotMatch(stderr, /^\s+at .*:\d+:\d+/m);
  const debug = await cli(['inspect', 'no-such-model'], { env: { WASMQUANT_DEBUG: '1' } });
  assert.match(debug.stderr, /^\s+at .*:\d+:\d+/m, 'WASMQUANT_DEBUG shows the stack');
});

test('colours: none in a pipe, FORCE_COLOR asks for them, NO_COLOR and --no-color win', async () => {
  const colored = async (args, env) => (await cli(['inspect', tinyLlama, ...args], { env })).stdout.includes('\x1b[');
  assert.equal(await colored([], {}), false);
  assert.equal(await colored([], { FORCE_COLOR: '1' }), true);
  assert.equal(await colored([], { FORCE_COLOR: '1', NO_COLOR: '1' }), false);
  assert.equal(await colored(['--no-color'], { FORCE_COLOR: '1' }), false);
});
