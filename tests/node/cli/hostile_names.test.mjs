// Names in files are written by strangers: none of their control characters may reach the terminal, from any command or stream.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { cli, cliPath, scratch, start, writeZeros } from './process.mjs';

const names = {
  'model.\x1b[2J\x1b]0;owned\x07.up_proj.weight': [32, 64],
  'model.\u009b31mred.up_proj.weight': [32, 64],
  'model.line\nerror: forged\r.up_proj.weight': [32, 64],
  'model.\u202egnp.up_proj.weight': [32, 64],
  'model.zero\u200bwidth\u2028.up_proj.weight': [32, 64],
};
const unprintable = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u;
const lines = (text) => text.split('\n').join('');

const commands = {
  inspect: (model) => ['inspect', model],
  'inspect --all': (model) => ['inspect', model, '--all'],
  plan: (model) => ['plan', model, '-p', 'int8'],
  quantize: (model, out) => ['quantize', model, '-o', out, '-p', 'int8'],
  compare: (model) => ['compare', model, model, '--all'],
  'plan with hostile patterns': (model) => ['plan', model, '-p', 'int8', '-x', 'a\x1b[31m', '-l', 'b\u202e\x1bc=int8'],
  'a hostile preset': (model) => ['plan', model, '-p', '\x1b[31mint8'],
  'a hostile option': (model) => ['plan', model, '--\x1b[31mpreset'],
  'a hostile path': (model) => ['inspect', `${model}\x1b]0;owned\x07`],
};
for (const [name, command] of Object.entries(commands)) {
  for (const flags of [[], ['--json']]) {
    test(`${name} ${flags.join()}`, async (t) => {
      const folder = scratch(t);
      const model = writeZeros(join(folder, 'model.safetensors'), names);
      const { code, stdout, stderr } = await cli([...command(model, join(folder, 'out')), ...flags]);
      assert.ok(stdout.length + stderr.length > 0);
      assert.doesNotMatch(lines(stdout), unprintable);
      assert.doesNotMatch(lines(stderr), unprintable);
      assert.doesNotMatch(stdout, /^error: forged/m);
      if (!name.startsWith('a hostile')) {
        assert.equal(code, 0, stderr);
        assert.match(stdout, flags.length > 0 ? /\\u001b\[2J/ : /\\x1b\[2J|\d tensors? compared|tensors quantized/);
      }
    });
  }
}

test('names survive --json unchanged', async (t) => {
  const model = writeZeros(join(scratch(t), 'model.safetensors'), names);
  const { stdout } = await cli(['inspect', model, '--json']);
  const found = JSON.parse(stdout).tensors.map((tensor) => tensor.name);
  assert.deepEqual(found.sort(), Object.keys(names).sort());
});

test('config keys in diagnostics', async () => {
  const input = JSON.stringify({ 'exlude\x1b[31m': [], global_quant_config: { weight: { dtype: 'int\u009b8' } } });
  const { code, stdout } = await cli(['config', 'check', '-'], { input });
  assert.equal(code, 1);
  assert.doesNotMatch(lines(stdout), unprintable);
});

test('the progress bar of a terminal', async (t) => {
  try {
    execFileSync('script', ['--version']);
  } catch {
    t.skip('needs the script command of util-linux for a terminal');
    return;
  }
  const folder = scratch(t);
  const model = writeZeros(join(folder, 'model.safetensors'), names);
  const typescript = join(folder, 'typescript');
  const line = [process.execPath, cliPath, 'quantize', model, '-o', join(folder, 'out'), '-p', 'int8', '--no-color'];
  const quoted = line.map((word) => `'${word}'`).join(' ');
  writeFileSync(typescript, '');
  const { code, stdout } = await start(['-qefc', quoted, typescript], { command: ['script'] }).done;
  assert.equal(code, 0, stdout);
  assert.match(stdout, /█/, 'a terminal gets a bar');
  assert.ok(
    !stdout.includes('\x1b[2J') &&
      !stdout.includes('\x1b]0;') &&
      !stdout.includes('\u009b') &&
      !stdout.includes('\u202e'),
  );
  const quiet = await start(['-qefc', `${quoted} --force --quiet`, typescript], { command: ['script'] }).done;
  assert.equal(quiet.code, 0, quiet.stdout);
  assert.doesNotMatch(quiet.stdout, /█/, '--quiet shows none');
});
