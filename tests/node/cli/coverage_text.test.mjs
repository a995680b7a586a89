// What the command line, the page and the saved report say of a plan's coverage, given literal numbers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { moduleOf } from './web_module.mjs';

const left = (bytes, text, rule = 'excluded') => ({ rule, text, tensors: bytes / 1000, parameters: bytes / 2, bytes });
const coverage = {
  parameters: 1_000_000,
  quantizedParameters: 931_000,
  bytes: 2_000_000,
  quantizedBytes: 1_920_000,
  left: [
    left(40_000, 'lm_head is excluded'),
    left(20_000, 'norms are not weights'),
    left(10_000, 'routers stay as they are'),
    left(5000, 'a bias'),
    left(3000, 'a convolution'),
    left(1000, 'six'),
    left(1000, 'seven'),
  ],
};
const whole = { parameters: 10, quantizedParameters: 10, bytes: 20, quantizedBytes: 20, left: [] };

const plain = (text) => text;
const colors = { dim: plain, bold: plain };

test('the command line: one line of shares, five reasons, the largest first, and how many more', async (t) => {
  const { coverageLines } = await moduleOf(t, 'cli/coverage.ts');
  assert.deepEqual(coverageLines(coverage, { colors, columns: 100 }), [
    'quantized: 93.1 % of parameters, 96.0 % of bytes',
    '     left                     why',
    '  40.0 kB  2.0 %  40 tensors  lm_head is excluded',
    '  20.0 kB  1.0 %  20 tensors  norms are not weights',
    '  10.0 kB  0.5 %  10 tensors  routers stay as they are',
    '  5.00 kB  0.3 %   5 tensors  a bias',
    '  3.00 kB  0.1 %   3 tensors  a convolution',
    '  and 2 more reasons',
  ]);
  const six = { ...coverage, left: coverage.left.slice(0, 6) };
  assert.equal(coverageLines(six, { colors, columns: 100 }).at(-1), '  and 1 more reason');
  assert.deepEqual(coverageLines(whole, { colors, columns: 100 }), ['quantized: 100 % of parameters, 100 % of bytes']);
  const narrow = coverageLines(coverage, { colors, columns: 40 });
  assert.ok(
    narrow.slice(1).every((line) => line.length <= 40),
    narrow.join('\n'),
  );
  const hostile = { ...coverage, left: [left(1000, 'a\u001b[31mb\nc')] };
  assert.match(coverageLines(hostile, { colors, columns: 100 }).at(-1), / a\\x1b\[31mb\\nc$/);
});

test('shares: only everything is 100 %, only nothing is 0 %', async (t) => {
  const { percentText } = await moduleOf(t, 'present/coverage.ts');
  assert.deepEqual(
    [percentText(9999, 10_000), percentText(1, 1_000_000), percentText(1, 2), percentText(0, 5), percentText(0, 0)],
    ['99.9 %', '0.1 %', '50.0 %', '0 %', '0 %'],
  );
  assert.equal(percentText(5, 5), '100 %');
});

/** The text of a tree of Preact. */
function textOf(node) {
  if (Array.isArray(node)) return node.map(textOf).join('');
  if (node === null || node === undefined || typeof node === 'boolean') return '';
  if (typeof node !== 'object') return String(node);
  const text = textOf(node.props.children);
  return node.type === 'li' || node.type === 'summary' ? `${text}\n` : text;
}

test('the page: what is left unquantized, by the most frequent reason', async (t) => {
  const { LeftList } = await moduleOf(t, 'demo/report/left-list.tsx');
  assert.equal(
    textOf(LeftList({ coverage })),
    [
      'Left as they are: 80.0 kB, 4.0 % of the model. Largest part: lm_head is excluded',
      '40.0 kB (2.0 %), 40 tensors: lm_head is excluded',
      '20.0 kB (1.0 %), 20 tensors: norms are not weights',
      '10.0 kB (0.5 %), 10 tensors: routers stay as they are',
      '5.00 kB (0.3 %), 5 tensors: a bias',
      '3.00 kB (0.1 %), 3 tensors: a convolution',
      'and 2 more reasons',
      '',
    ].join('\n'),
  );
  assert.equal(LeftList({ coverage: whole }), null);
});

test('the saved report: shares and reasons, escaped', async (t) => {
  const { reportHtml } = await moduleOf(t, 'demo/export/report-html.ts');
  const totals = { tensors: 0, quantized: 0, bytesBefore: 0, bytesAfter: 0, bitsPerWeight: 0 };
  const html = (given) =>
    reportHtml(
      {
        report: { totals: { ...totals, coverage: given }, tensors: [], diagnostics: [] },
        config: {},
        modelTitle: 'model',
        configTitle: 'config',
        plan: { format: 'quark' },
      },
      '1',
    );
  const text = html({ ...coverage, left: [left(40_000, '<b>lm_head</b>'), ...coverage.left.slice(1)] });
  assert.ok(text.includes('<dd>93.1 % of parameters, 96.0 % of bytes</dd>'), text);
  assert.ok(text.includes('<li>40.0 kB (2.0 %), 40 tensors: &lt;b&gt;lm_head&lt;/b&gt;</li>'), text);
  assert.ok(text.includes('<li>and 2 more reasons</li>'), text);
  assert.ok(!html(whole).includes('Left as they are'));
});
