// Files that are given as text: read as what they are, or refused with what they look like, by one function for all commands.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { readTextFile } from '../../../dist/node.js';
import { cli } from '../cli/process.mjs';
import { modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const bytes = (...parts) =>
  new Uint8Array(Buffer.concat(parts.map((part) => (Array.isArray(part) ? Buffer.from(part) : Buffer.from(part)))));
const utf16 = (text, isBig = false) => (isBig ? Buffer.from(text, 'utf16le').swap16() : Buffer.from(text, 'utf16le'));
const prose = 'The café is open.\nIt closes at nine.\n';

test('text in UTF-8, and in UTF-16 with its mark, is read without the mark', async () => {
  for (const file of [
    bytes(prose),
    bytes([0xef, 0xbb, 0xbf], prose),
    bytes([0xff, 0xfe], utf16(prose)),
    bytes([0xfe, 0xff], utf16(prose, true)),
  ])
    assert.deepEqual(await readTextFile(file, 'a.txt'), { text: prose, remark: null });
  const odd = [
    '',
    '[Verse 1]\nLa la\n',
    '{ not json }\n',
    '<b>bold</b>\n',
    '[1] A footnote.\n',
    '\ufffd\n',
    'a\f\x1b[0m',
  ];
  for (const text of odd) assert.deepEqual(await readTextFile(bytes(text), 'a.txt'), { text, remark: null });
});

test('texts of JSON lines and of a JSON list are read as one text, and that is said', async () => {
  const rows = [{ text: 'one', id: 1 }, { text: 'two\nlines' }];
  const lines = rows.map((row) => JSON.stringify(row)).join('\r\n\r\n');
  for (const [file, what] of [
    [bytes(lines), 'JSON lines'],
    [bytes([0xef, 0xbb, 0xbf], lines), 'JSON lines'],
    [bytes([0xff, 0xfe], utf16(lines)), 'JSON lines'],
    [bytes(JSON.stringify(rows, null, 2)), 'JSON'],
    [bytes(JSON.stringify(rows.map(({ text }) => text))), 'JSON'],
  ]) {
    const { text, remark } = await readTextFile(file, 'a.jsonl');
    assert.deepEqual(text, ['one', 'two\nlines']);
    assert.equal(remark, `a.jsonl is ${what}: the field "text" of 2 rows is read as one text`);
  }
});

const refused = {
  Parquet: [bytes('PAR1', [0, 1, 2], 'PAR1'), /^a: is a Parquet table/],
  Arrow: [bytes([0xff, 0xff, 0xff, 0xff, 0x10, 0, 0, 0]), /Arrow stream/],
  gzip: [new Uint8Array(gzipSync(prose)), /gzip archive/],
  zip: [bytes('PK\x03\x04', [0, 0]), /zip archive/],
  PDF: [bytes('%PDF-1.7\n'), /PDF document/],
  RTF: [bytes('{\\rtf1 text}'), /RTF/],
  HTML: [bytes('\n<!-- x -->\n<!DOCTYPE html><p>text'), /web page/],
  'HTML in UTF-16': [bytes([0xff, 0xfe], utf16('<html><p>text')), /web page/],
  XML: [bytes('<?xml version="1.0"?><a/>'), /XML document/],
  'UTF-32': [bytes([0xff, 0xfe, 0, 0, 0x41, 0, 0, 0]), /UTF-32/],
  'UTF-16 without mark': [bytes(utf16(prose)), /^a: byte 1: is 0x00.*UTF-16 without a byte order mark/],
  'half of UTF-16': [bytes([0xff, 0xfe, 0x00, 0xd8, 0x41, 0x00]), /not valid/],
  'Latin-1': [bytes('caf', [0xe9], ' ouvert'), /^a: byte 3: 0xe9 is not UTF-8.*ISO 8859-1/],
  'Latin-1 behind U+FFFD': [bytes('é\ufffd', [0xe9], 'x'), /^a: byte 5: 0xe9/],
  'cut UTF-8': [bytes('ab', [0xe2, 0x82]), /^a: byte 2: 0xe2/],
  binary: [bytes('text', [0, 7], 'text'), /^a: byte 4: is 0x00.*binary/],
  'JSON without texts': [bytes('{"content": "x", "id": 1}\n'), /^a: line 1: has no "text".*fields are content, id/],
  'JSON with a wrong line': [bytes('{"text": "x"}\n{"text": "y"\n'), /^a: line 2: is not JSON/],
  'JSON with a number': [bytes('{"text": "x"}\n{"text": 7}\n'), /^a: line 2: has no "text"/],
  'a JSON document': [bytes('{\n  "a": 1\n}\n'), /^a: \/0: has no "text"/],
};

for (const [what, [file, message]] of Object.entries(refused))
  test(`${what} is refused with what it is`, () =>
    assert.rejects(readTextFile(file, 'a'), { code: 'file-invalid', message }));

test('every position of a wrong byte is found', async () => {
  const text = Buffer.from('aé€😀b'.repeat(3));
  for (let at = 0; at <= text.length; ++at) {
    const isInside = at < text.length && (text[at] & 0xc0) === 0x80;
    if (isInside) continue;
    const file = bytes(text.subarray(0, at), [0xff], text.subarray(at));
    await assert.rejects(readTextFile(file, 'a'), { message: new RegExp(`^a: byte ${at}: 0xff`) });
  }
});

test('text with U+0000 is refused by the library itself', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const language = quantizer.languageModel(model);
  const tokens = { text: 'PAR1\0\0', tokenizer: { encode: () => [1, 2, 3] } };
  await assert.rejects(language.evaluate({ tokens }), { code: 'argument-invalid', message: /U\+0000.*readTextFile/ });
});

test('every command that takes a text reads it so', async (t) => {
  const folder = scratchFolder(t);
  const [table, lines] = [join(folder, 'a.parquet'), join(folder, 'a.jsonl')];
  writeFileSync(table, bytes('PAR1', new Uint8Array(64)));
  writeFileSync(lines, `${JSON.stringify({ text: 'Once upon a time there was a model. '.repeat(20) })}\n`.repeat(2));
  const out = join(folder, 'out');
  const commands = (path) => [
    ['evaluate', tinyLlama, '--text', path],
    ['imatrix', tinyLlama, '--text', path, '-o', join(folder, 'imatrix.gguf')],
    ['auto', tinyLlama, '--text', path, '--target-bits', '6', '-o', join(folder, 'auto.json')],
    ['quantize', tinyLlama, '-o', out, '-p', 'int4_wo_32', '--best', '--calibration', path],
    ['quantize', tinyLlama, '-o', out, '-p', 'int4_wo_32', '--best', '--calibration-text', path],
  ];
  for (const command of commands(table)) {
    const { code, stderr } = await cli(command);
    assert.notEqual(code, 0, command.join(' '));
    assert.match(stderr, /is a Parquet table, not text/, command.join(' '));
  }
  const { code, stderr } = await cli(['evaluate', tinyLlama, '--text', lines]);
  assert.equal(code, 0, stderr);
  assert.match(stderr, /note: .*a\.jsonl is JSON lines: the field "text" of 2 rows is read as one text/);
});
