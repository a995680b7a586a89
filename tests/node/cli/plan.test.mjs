// plan: what each tensor becomes and why, edits of the config, patterns that matched nothing.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { planOf } from '../../../dist/node.js';
import { cli, cliJson, scratch, tinyLlama } from './process.mjs';

const int8 = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
const int4 = { dtype: 'int4', qscheme: 'per_group', ch_axis: -1, group_size: 32, symmetric: true };
const named = (document, name) => planOf(document).tensors.find((tensor) => tensor.name === name);

test('text: spec, sizes and reason of each kind of layer', async () => {
  const { code, stdout, stderr } = await cli(['plan', tinyLlama, '--preset', 'int8']);
  assert.equal(code, 0, stderr);
  assert.match(
    stdout,
    /^model\.layers\.\{0\.\.3\}\.mlp\.up_proj\.weight +4 × +Linear +576 × 256 +BF16 +int8 per channel scale bfloat16 +1\.18 MB +\d+ kB +\S/m,
  );
  assert.match(stdout, /^model\.norm\.weight +Norm .* copied +512 B +512 B +\S/m);
  assert.match(stdout, /^\d+ of 39 tensors quantized, 5\.15 MB → \S+ MB \(\d+\.\d %\), 8\.\d\d bits per weight$/m);
});

test('--json prints the plan, one tensor per line', async () => {
  const { code, stderr, stdout, document } = await cliJson(['plan', tinyLlama, '--preset', 'int8']);
  assert.equal(code, 0, stderr);
  assert.equal(stderr, '');
  assert.equal(document.format, 'compressed-tensors');
  assert.equal(document.tensors.length, 39);
  assert.equal(stdout.split('\n').filter((line) => line.startsWith('    {"name":"model.')).length, 38);
  assert.equal(named(document, 'model.layers.0.mlp.up_proj.weight').spec.dtype, 'int8');
  assert.equal(named(document, 'model.norm.weight').action, 'copy');
});

test('--pure gives every layer the type of the GGUF recipe', async () => {
  const types = async (...more) => {
    const { code, document, stderr } = await cliJson(['plan', tinyLlama, '--preset', 'q5_0', ...more]);
    assert.equal(code, 0, stderr);
    const quantized = planOf(document).tensors.filter(({ action }) => action === 'quantize');
    return [...new Set(quantized.map(({ spec }) => spec.dtype))].sort();
  };
  assert.deepEqual(await types(), ['q5_0', 'q6_k']);
  assert.deepEqual(await types('--pure'), ['q5_0']);
  assert.deepEqual(await types('--pure', '--layer', '*.down_proj=q8_0'), ['q5_0', 'q8_0']);
  const refused = await cli(['plan', tinyLlama, '--preset', 'int8', '--pure']);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /--pure works only with GGUF recipes/);
});

test('--exclude adds to the exclusions of preset and file', async (t) => {
  const path = join(scratch(t), 'config.json');
  writeFileSync(path, JSON.stringify({ global_quant_config: { weight: int8 }, exclude: ['lm_head'] }));
  for (const source of [
    ['--preset', 'int8'],
    ['--config', path],
  ]) {
    const { document } = await cliJson(['plan', tinyLlama, ...source, '-x', '*.down_proj', '-x', 'model.layers.1.*']);
    for (const name of ['lm_head', 'model.layers.0.mlp.down_proj', 'model.layers.1.mlp.up_proj']) {
      const tensor = named(document, `${name}.weight`);
      assert.equal(tensor.action, 'copy', name);
      assert.equal(tensor.reason.rule, 'excluded', name);
    }
    assert.equal(named(document, 'model.layers.0.mlp.up_proj.weight').action, 'quantize');
  }
});

test("--layer overrides the config's globs, and the first --layer overrides the next", async (t) => {
  const path = join(scratch(t), 'config.json');
  const config = { global_quant_config: { weight: int8 }, layer_quant_config: { '*.mlp.*': { weight: int8 } } };
  writeFileSync(path, JSON.stringify(config));
  const layers = ['-l', '*.down_proj=int4_wo_32', '-l', 'model.layers.0.*=int4_wo_64'];
  const { code, stderr, document } = await cliJson(['plan', tinyLlama, '-c', path, ...layers]);
  assert.equal(code, 0, stderr);
  const groupSize = (name) => named(document, `${name}.weight`).spec.group_size;
  assert.equal(groupSize('model.layers.0.mlp.down_proj'), 32);
  assert.equal(groupSize('model.layers.0.mlp.up_proj'), 64);
  assert.equal(groupSize('model.layers.2.mlp.down_proj'), 32);
  assert.equal(named(document, 'model.layers.2.mlp.up_proj.weight').spec.dtype, 'int8');
});

test('a config from stdin, and a byte order mark', async () => {
  const input = `\uFEFF${JSON.stringify({ global_quant_config: { weight: int4 }, exclude: ['lm_head'] })}`;
  const { code, stderr, document } = await cliJson(['plan', tinyLlama, '-c', '-'], { input });
  assert.equal(code, 0, stderr);
  assert.equal(named(document, 'model.layers.0.mlp.up_proj.weight').spec.group_size, 32);
});

test('a pattern that matches nothing is a warning with its place', async () => {
  const { code, stdout } = await cli(['plan', tinyLlama, '-p', 'int8', '-x', 'lm_hed']);
  assert.equal(code, 0);
  assert.match(stdout, /warning +\/exclude\/\d+ /);
  assert.match(stdout, /lm_hed/);
});

test('a bad config: every problem, exit 1', async () => {
  const config = { global_quant_config: { weight: { ...int4, group_size: 100 } } };
  const { code, document } = await cliJson(['plan', tinyLlama, '-c', '-'], { input: JSON.stringify(config) });
  assert.equal(code, 1);
  assert.ok(document.error.code.length > 0);
  const { code: emptyCode, stderr } = await cli(['plan', tinyLlama, '-c', '-'], { input: 'int8' });
  assert.equal(emptyCode, 1);
  assert.match(stderr, /must be a JSON object/);
});
