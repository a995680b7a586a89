// Where quantize writes: without -o to a name of model and scheme, and never over another run's result.
import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { cli, cliJson, scratch, tinyLlama, tinyLlamaFile } from './process.mjs';

test('without -o the result is named after model and scheme, where the command runs', async (t) => {
  const cwd = scratch(t);
  cpSync(tinyLlama, join(cwd, 'my-model'), { recursive: true });
  cpSync(tinyLlamaFile, join(cwd, 'one.safetensors'));
  for (const [args, name, isFolder] of [
    [['my-model/', '--preset', 'int8'], 'my-model-int8', true],
    [['one.safetensors', '--preset', 'INT4_WO_128'], 'one-INT4_WO_128', true],
    [['my-model', '--preset', 'q4_k_m'], 'my-model-Q4_K_M.gguf', false],
    [['.', '--preset', 'int8', '--strip-prefix'], 'model-int8', true],
  ]) {
    const options = { cwd: args[0] === '.' ? join(cwd, 'my-model') : cwd };
    const { code, document, stdout } = await cliJson(['quantize', ...args], options);
    assert.equal(code, 0, stdout);
    assert.equal(document.output, name);
    assert.equal(statSync(join(options.cwd, name)).isDirectory(), isFolder);
  }
  const again = await cliJson(['quantize', 'my-model', '--preset', 'int8'], { cwd });
  assert.equal(again.document.error.code, 'target-exists');
});

test('of two concurrent runs into one folder one is refused with a message and leaves nothing behind', async (t) => {
  const cwd = scratch(t);
  const run = () => cli(['quantize', tinyLlama, '--preset', 'int8', '-o', 'both'], { cwd });
  const ended = await Promise.all([run(), run(), run()]);
  const failed = ended.filter(({ code }) => code !== 0);
  assert.equal(failed.length, 2, ended.map(({ stderr }) => stderr).join('\n'));
  for (const { stderr } of failed) {
    assert.match(stderr, /target-exists/);
    assert.doesNotMatch(stderr, /ENOTEMPTY|EEXIST/);
  }
  assert.ok(existsSync(join(cwd, 'both/config.json')));
  assert.deepEqual(readdirSync(cwd), ['both']);
});
