// What the command line and the page both show and write: numbers, specs in words, edits of configs. Literal values.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { moduleOf } from './web_module.mjs';

test('numbers have three digits and decimal units', async (t) => {
  const units = await moduleOf(t, 'present/units.ts');
  const { bytesText, elementsText, countText, durationText, ratioText, shapeText, decibels, decibelText } = units;
  assert.deepEqual([0, 999, 1000, 16_250, 999_499, 1.6e9].map(bytesText), [
    '0 B',
    '999 B',
    '1.00 kB',
    '16.3 kB',
    '999 kB',
    '1.60 GB',
  ]);
  assert.deepEqual([12, 2_574_592, 8.03e9].map(elementsText), ['12', '2.57 M', '8.03 B']);
  assert.equal(countText(1_234_567), '1,234,567');
  assert.deepEqual([280, 12_340, 200_000, 7_500_000].map(durationText), [
    '280 ms',
    '12.3 s',
    '3 min 20 s',
    '2 h 5 min',
  ]);
  assert.deepEqual(
    [ratioText(100, 25), ratioText(25, 100), ratioText(7, 7)],
    ['4.00× smaller', '4.00× larger', 'same size'],
  );
  assert.deepEqual([shapeText([288, 256]), shapeText([])], ['288 × 256', 'scalar']);
  assert.deepEqual(
    [18.26, Infinity, -Infinity].map((value) => decibels(value)),
    ['18.3', '∞', '-∞'],
  );
  assert.deepEqual([18.206, null, Infinity, -Infinity].map(decibelText), ['18.21 dB', 'exact', 'exact', '-∞ dB']);
});

test('a spec in words leaves out what is usual', async (t) => {
  const { specText, schemeText, actionText } = await moduleOf(t, 'present/spec_text.ts');
  const group = { dtype: 'int4', qscheme: 'per_group', ch_axis: -1, group_size: 32, symmetric: true };
  for (const [spec, text] of [
    [group, 'int4 groups of 32'],
    [{ ...group, symmetric: false, ch_axis: 0 }, 'int4 groups of 32 (axis 0) asymmetric'],
    [{ ...group, group_size: -1 }, 'int4 groups of the whole axis'],
    [{ dtype: 'int8', qscheme: 'per_channel', ch_axis: 0 }, 'int8 per channel'],
    [{ dtype: 'int8', qscheme: 'per_channel', ch_axis: 1, is_dynamic: true }, 'int8 per channel (axis 1) dynamic'],
    [{ dtype: 'fp8_e4m3', qscheme: 'per_tensor' }, 'fp8_e4m3 per tensor'],
    [{ dtype: 'fp8_e4m3', qscheme: 'per_block', block_size: [128, 64] }, 'fp8_e4m3 blocks of 128 × 64'],
    [
      { dtype: 'int8', qscheme: 'per_tensor', round_method: 'floor', scale_type: 'pof2' },
      'int8 per tensor floor scale pof2',
    ],
    [{ dtype: 'bfloat16' }, 'bfloat16'],
  ])
    assert.equal(specText(spec), text);
  assert.equal(schemeText(group), 'groups of 32');
  assert.equal(actionText({ action: 'copy', spec: null }), 'copied');
  assert.equal(actionText({ action: 'cast', spec: { dtype: 'bfloat16' } }), 'cast to bfloat16');
  const stages = [{ dtype: 'fp8_e4m3', qscheme: 'per_tensor' }, group];
  assert.equal(actionText({ action: 'quantize', spec: group, stages }), 'fp8_e4m3 per tensor, then int4 groups of 32');
});

test('edits of a config take precedence over it, and leave the config itself alone', async (t) => {
  const { configOf, withExclusions, withLayers } = await moduleOf(t, 'present/config_edits.ts');
  const quark = Object.freeze({
    exclude: Object.freeze(['lm_head']),
    layer_quant_config: Object.freeze({ '*.up': 1, '*.down': 2 }),
  });
  const edited = withLayers(
    withExclusions(quark, ['*.gate']),
    new Map([
      ['*.down', 3],
      ['*.k', 4],
    ]),
  );
  assert.deepEqual(edited, {
    exclude: ['lm_head', '*.gate'],
    layer_quant_config: { '*.down': 3, '*.k': 4, '*.up': 1 },
  });
  assert.deepEqual(Object.keys(edited.layer_quant_config), ['*.down', '*.k', '*.up']);
  assert.equal(withLayers(withExclusions(quark, []), new Map()), quark);
  const recipe = { dialect: 'gguf', recipe: 'q4_k_m' };
  assert.deepEqual(withLayers(withExclusions(recipe, ['output']), new Map([['*.k', 'q8_0']])), {
    ...recipe,
    exclude: ['output'],
    layers: { '*.k': 'q8_0' },
  });
  const [named, other] = [
    { name: 'mxfp4', config: quark },
    { name: 'q4_k_m', config: recipe },
  ];
  assert.deepEqual(configOf(named, true), { dialect: 'gguf', recipe: 'mxfp4' });
  assert.equal(configOf(named, false), quark);
  for (const takesRecipes of [false, true]) assert.equal(configOf(other, takesRecipes), recipe);
});

test('a sentence begins with a capital letter, but names and addresses stay as they are', async (t) => {
  const { sentenceOf } = await moduleOf(t, 'present/sentence.ts');
  assert.equal(sentenceOf(null, 'the file has 0 bytes'), 'The file has 0 bytes.');
  assert.equal(sentenceOf('config.json', 'is missing'), 'config.json is missing.');
  for (const said of ['http://a.b/c is no file.', 'tokenizer.json cannot be used.', 'data_offsets [4, 12) overlap.'])
    assert.equal(sentenceOf(null, said), said);
});

test('a message is a whole sentence, with its place as the subject where it has none', async (t) => {
  const { sentenceOf, withSubject } = await moduleOf(t, 'present/sentence.ts');
  assert.equal(withSubject('a.weight', 'is the first of 3 tensors'), 'a.weight is the first of 3 tensors');
  assert.equal(withSubject('a.weight', 'the tensor is empty'), 'the tensor is empty');
  assert.equal(withSubject('', 'is empty'), 'is empty');
  assert.equal(sentenceOf('a.weight', 'is the first of 3 tensors'), 'a.weight is the first of 3 tensors.');
  assert.equal(sentenceOf('a.weight', 'the tensor is empty'), 'The tensor is empty.');
  assert.equal(sentenceOf(undefined, 'set r4 to false'), 'Set r4 to false.');
});

test('what Unicode calls a control, a format, a line separator or half a pair is escaped, and nothing else', async (t) => {
  const { printable } = await moduleOf(t, 'present/printable.ts');
  const affects = /^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]$/u;
  for (let point = 0; point <= 0x10ffff; point++) {
    const text = `a${String.fromCodePoint(point)}`;
    if ((printable(text) !== text) !== affects.test(text.slice(1))) assert.fail(`U+${point.toString(16)}`);
  }
});

test('counts have commas', async (t) => {
  const { countText } = await moduleOf(t, 'present/units.ts');
  const reference = new Intl.NumberFormat('en');
  for (const count of [0, 7, 999, 1000, 12_345, 999_999, 1_000_000, 9_876_543_210])
    assert.equal(countText(count), reference.format(count));
});
