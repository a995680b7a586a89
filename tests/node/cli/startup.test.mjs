// What a command starts and loads before it answers.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import test from 'node:test';
import { cliPath, scratch, start, tinyLlama, writeZeros } from './process.mjs';

const tokens = join(import.meta.dirname, '../../files/tiny-llama-reference/calib_tokens.safetensors');

/**
 * Prints to stderr, at the end, the files of dist/cli that are loaded and the number of threads that were started. The 100 ms of
 * work after which workers start last an hour, so that a slow machine has none either.
 */
const hook = `
const { setTimeout } = globalThis;
globalThis.setTimeout = (call, ms, ...given) => setTimeout(call, ms === 100 ? 3_600_000 : ms, ...given);
const { Worker } = require('node:worker_threads');
let threads = 0;
require('node:worker_threads').Worker = class extends Worker { constructor(...given) { super(...given); threads += 1; } };
const loaded = () => Object.keys(require.cache).filter((path) => path.endsWith('.cjs') && path !== __filename);
process.on('exit', () => require('node:fs').writeSync(2, '\\n' + JSON.stringify({ threads, loaded: loaded() })));
`;

async function started(t, args) {
  const path = join(scratch(t), 'hook.cjs');
  writeFileSync(path, hook);
  const { code, stdout, stderr } = await start(args, { command: [process.execPath, '--require', path, cliPath] }).done;
  const { threads, loaded } = JSON.parse(stderr.slice(stderr.lastIndexOf('\n')));
  return { code, stdout, threads, loaded: loaded.map((file) => basename(file, '.cjs')) };
}

for (const [args, exitCode] of [
  [['--help'], 0],
  [['quantize', '--help-all'], 0],
  [['--version'], 0],
  [['quantize', tinyLlama, '--wrnog'], 2],
])
  test(`${args.join(' ')}: no thread, nothing of the library`, async (t) => {
    const { code, threads, loaded } = await started(t, args);
    assert.equal(code, exitCode);
    assert.equal(threads, 0);
    assert.ok(loaded.includes('program'), `${loaded}`);
    assert.deepEqual(
      loaded.filter((name) => /library|engine|models|tokenizers|progress/.test(name)),
      [],
    );
  });

test('config commands and explain: no thread', async (t) => {
  const config = join(scratch(t), 'config.json');
  writeFileSync(config, '{"global_quant_config": {"weight": {"dtype": "int8"}}}');
  for (const args of [['config', 'presets'], ['config', 'check', config], ['explain', 'pattern-unused'], ['formats']]) {
    const { code, stdout, threads, loaded } = await started(t, args);
    assert.equal(code, 0);
    assert.ok(stdout.length > 10);
    assert.equal(threads, 0, args.join(' '));
    assert.ok(!loaded.includes('quantize'), `${args.join(' ')} loaded ${loaded}`);
  }
});

test('models of many tensors are planned in a thread, for which a signal does not have to wait', async (t) => {
  const tensors = Object.fromEntries(
    Array.from({ length: 2000 }, (_, layer) => [`model.layers.${layer}.mlp.up_proj.weight`, [1, 32]]),
  );
  const large = writeZeros(join(scratch(t), 'model.safetensors'), tensors);
  const { code, threads, loaded } = await started(t, ['plan', large, '--preset', 'int8']);
  assert.equal(code, 0);
  assert.equal(threads, 1);
  assert.ok(!loaded.includes('library'), `${loaded}`);
});

test('a small model needs no thread; of workers, none where they are not asked for', async (t) => {
  for (const [more, count] of [
    [[], 0],
    [['--threads', '0'], 0],
    [['--threads', '2'], 1],
    [['--calibration', tokens], 1],
  ]) {
    const command = ['quantize', tinyLlama, '--preset', 'int8', '-o', join(scratch(t), 'out'), '--json', ...more];
    const { code, stdout, threads } = await started(t, command);
    assert.equal(code, 0, stdout);
    assert.equal(threads, count, more.join(' '));
  }
});

test('compiled code is kept in the folder of the user, where Node can', async (t) => {
  const cache = scratch(t);
  const run = (env) => start(['--version'], { env: { XDG_CACHE_HOME: cache, ...env } }).done;
  const keeps = process.platform === 'linux' && 'enableCompileCache' in (await import('node:module')).default;
  assert.equal((await run({ NODE_DISABLE_COMPILE_CACHE: '1' })).code, 0);
  assert.deepEqual(readdirSync(cache), []);
  assert.equal((await run({})).code, 0);
  assert.deepEqual(readdirSync(cache), keeps ? ['wasmquant'] : []);
  // A folder that cannot be written costs nothing but time.
  mkdirSync(join(cache, 'other'));
  writeFileSync(join(cache, 'other/wasmquant'), 'a file');
  const { code, stderr } = await run({ XDG_CACHE_HOME: join(cache, 'other') });
  assert.deepEqual([code, stderr], [0, '']);
});
