// config check, presets, convert.
import assert from 'node:assert/strict';
import test from 'node:test';
import { quantizerFor } from '../scratch.mjs';
import { cli, cliJson } from './process.mjs';

const broken = {
  global_quant_config: { weight: { dtype: 'int99', qscheme: 'per_channel', ch_axis: 0 } },
  layer_quant_config: { '*.q_proj': { weight: { dtype: 'int4', qscheme: 'per_group', ch_axis: -1, group_size: -7 } } },
  exlude: ['lm_head'],
};

test('check shows every problem with its pointer, exit 1', async () => {
  const { code, stdout, stderr } = await cli(['config', 'check', '-'], { input: JSON.stringify(broken) });
  assert.equal(code, 1);
  assert.equal(stderr, '');
  assert.match(stdout, /^error +\/global_quant_config\/weight\/dtype /m);
  assert.match(stdout, /^error +\/layer_quant_config\/\S*q_proj\/weight\/group_size /m);
  assert.match(stdout, /^\S+ +\/exlude /m);
  assert.match(stdout, /^-: not usable, \d+ errors/m);
});

test('check --json', async () => {
  const { code, document } = await cliJson(['config', 'check', '-'], { input: JSON.stringify(broken) });
  assert.equal(code, 1);
  assert.equal(document.valid, false);
  const places = document.diagnostics.map((diagnostic) => diagnostic.where);
  for (const place of ['/global_quant_config/weight/dtype', '/exlude'])
    assert.ok(places.includes(place), `${place} in ${places}`);
});

test('every preset passes its own check, and prints as a config', async (t) => {
  const { code, document } = await cliJson(['config', 'presets', '--all']);
  assert.equal(code, 0);
  assert.ok(document.presets.length > 0);
  const quantizer = await quantizerFor(t);
  const dialects = new Set();
  for (const { name, config } of document.presets) {
    const found = quantizer.checkConfig(config);
    assert.ok(
      found.every(({ severity }) => severity !== 'error'),
      `${name}: ${JSON.stringify(found)}`,
    );
    // The command adds nothing of a preset's own: one of each dialect goes through its processes.
    if (dialects.has(config.dialect)) continue;
    dialects.add(config.dialect);
    const printed = await cli(['config', 'presets', name]);
    assert.deepEqual(JSON.parse(printed.stdout), config, name);
    const check = await cli(['config', 'check', '-'], { input: printed.stdout });
    assert.equal(check.code, 0, `${name}: ${check.stdout}`);
    assert.match(check.stdout, /^-: usable, /m);
  }
});

test('the list of presets is a table', async () => {
  const { code, stdout } = await cli(['config', 'presets']);
  assert.equal(code, 0);
  assert.match(stdout, /^int8 +\S/m);
});

test('the short list of presets has those that runtimes are offered, --all every one', async () => {
  const namesOf = async (...options) => {
    const { document } = await cliJson(['config', 'presets', ...options]);
    return document.presets.map(({ name }) => name);
  };
  const [short, all] = [await namesOf(), await namesOf('--all')];
  assert.ok(short.length <= 24, `${short.length} are too many to choose from`);
  for (const name of ['int8', 'int4_wo_128', 'q4_k_m', 'mlx_4bit']) assert.ok(short.includes(name), name);
  assert.ok(!short.includes('mx6') && all.includes('mx6'));
  for (const name of short) assert.ok(all.includes(name), name);
});

test('text that is not a JSON object', async () => {
  for (const input of ['', 'int8', '[1]']) {
    const { code, stderr } = await cli(['config', 'check', '-'], { input });
    assert.equal(code, 1);
    assert.match(stderr, /must be a JSON object/);
  }
  const { code, document } = await cliJson(['config', 'check', '-'], { input: '{"a": 1,,}' });
  assert.equal(code, 1);
  assert.equal(document.diagnostics[0].severity, 'error');
});

test('convert prints the config, and what is lost on stderr', async () => {
  const { document } = await cliJson(['config', 'presets', 'int4_wo_128']);
  const input = JSON.stringify(document.config);
  const { code, stdout, stderr } = await cli(['config', 'convert', '-', '--to', 'awq'], { input });
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(stdout).modules_to_not_convert, ['lm_head']);
  assert.match(stderr, /^warning +\/global_quant_config\/weight /m);
  const back = await cli(['config', 'convert', '-', '--to', 'quark'], { input: stdout });
  assert.equal(back.code, 0);
  assert.equal(JSON.parse(back.stdout).global_quant_config.weight.group_size, 128);
});

test('convert --json has the losses', async () => {
  const input = JSON.stringify({
    dialect: 'aihwkit',
    module_qconfig_map: { Linear: { module_qconfig: { weight_quant: { n_bits: 8, range_estimator: 'MSE' } } } },
    excluded_modules: ['lm_head'],
  });
  const { code, document } = await cliJson(['config', 'convert', '-', '--to', 'quark'], { input });
  assert.equal(code, 0);
  assert.equal(document.config.layer_type_quant_config.Linear.weight.dtype, 'int8');
  assert.deepEqual(
    document.losses.map(({ code: name, where }) => [name, where]),
    [['option-lost', '/module_qconfig_map/Linear/module_qconfig/weight_quant']],
  );
});

test('convert fails when the dialect can express nothing', async () => {
  const { document } = await cliJson(['config', 'presets', 'fp8']);
  const { code, stdout, stderr } = await cli(['config', 'convert', '-', '--to', 'gptq'], {
    input: JSON.stringify(document.config),
  });
  assert.equal(code, 1);
  assert.equal(stdout, '');
  assert.match(stderr, /gptq cannot express any part of this config/);
});
