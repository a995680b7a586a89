// `wasmquant curve`: the table, the picture, the JSON document, wrong usage.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { wordModel } from '../onnx/model.mjs';
import { files, tinyLlama } from '../scratch.mjs';
import { cli, cliJson, scratch } from './process.mjs';
import { moduleOf } from './web_module.mjs';

const text = join(files, '../../SECURITY.md');

test('curve prints a table, and draws a picture', async (t) => {
  const svg = join(scratch(t), 'curve.svg');
  const options = ['--for', 'llama.cpp', '--schemes', 'Q8_0,q4_k_m', '--text', text, '--windows', '2', '--svg', svg];
  const { code, stdout, stderr } = await cli(['curve', tinyLlama, ...options]);
  assert.equal(stderr, '');
  assert.equal(code, 0);
  assert.match(stdout, /original +safetensors +10\.3 MB +100\.0 % +\d\.\d{4}/);
  assert.match(stdout, /q8_0 +gguf +2\.75 MB +26\.7 % +\d\.\d{4} ± 0\.\d{4}/);
  assert.match(stdout, /loss: bits per byte, 2 windows/);
  const picture = readFileSync(svg, 'utf8');
  assert.match(picture, /^<svg [^>]*viewBox="0 0 720 420"/);
  assert.match(picture, /<title>q8_0: 2\.75 MB, \d\.\d{4}<\/title>/);
  assert.equal(picture.match(/<circle/g).length, 2);
  const again = await cliJson(['curve', tinyLlama, ...options]);
  assert.equal(again.document.error.code, 'target-exists');
});

test("curve --json prints the library's document; without a text it measures weights and suggests a text", async (t) => {
  const report = join(scratch(t), 'curve.json');
  const { document } = await cliJson(['curve', tinyLlama, '--schemes', 'int8,int4_wo_128', '--report', report]);
  assert.equal(document.metric.kind, 'weight-error');
  assert.deepEqual(
    document.points.map(({ scheme, measured }) => [scheme, measured]),
    [
      ['int8', true],
      ['int4_wo_128', true],
    ],
  );
  assert.deepEqual(JSON.parse(readFileSync(report, 'utf8')), document);
  const { stderr } = await cli(['curve', tinyLlama, '--schemes', 'int8']);
  assert.match(stderr, /--text FILE/);
});

test('curve finds ONNX Runtime and runs the model', async (t) => {
  const path = join(scratch(t), 'words.onnx');
  writeFileSync(path, wordModel(50));
  const { document } = await cliJson(['curve', path, '--schemes', 'int8,int4_wo_32']);
  assert.equal(document.metric.kind, 'output-error');
  assert.ok(document.points.every(({ measured }) => measured));
});

test('curve refuses what it cannot do', async (t) => {
  const codeOf = async (...options) => (await cli(['curve', tinyLlama, ...options])).code;
  assert.equal(await codeOf('--for', 'llama'), 2);
  assert.equal(await codeOf('--schemes', 'int5'), 2);
  assert.equal(await codeOf('--windows', '0'), 2);
  assert.equal(await codeOf('--text', text, '--tokens', text), 2);
  assert.equal(await codeOf('--svg', text), 1);
  const graph = join(scratch(t), 'words.onnx');
  writeFileSync(graph, wordModel(50));
  assert.equal((await cli(['curve', graph, '--for', 'vllm'])).code, 1);
});

test('a picture holds estimates, titles of strangers, and equal losses', async (t) => {
  const { curvePicture } = await moduleOf(t, 'present/curve_picture.ts');
  const point = { format: 'gguf', bytes: 10, loss: 0, measured: true, onFrontier: true };
  const metric = { kind: 'output-error', name: 'relative error of outputs', windows: 4 };
  const points = [
    { ...point, scheme: 'a' },
    { ...point, scheme: 'b', measured: false },
    { ...point, scheme: 'c', loss: null },
  ];
  const picture = curvePicture({ metric, original: { bytes: 20, loss: 0 }, points, undecided: [] }, '<script>"&');
  assert.doesNotMatch(picture, /<script>|NaN|Infinity/);
  assert.equal(picture.match(/<circle/g).length, 2);
  assert.match(picture, /class="point estimate"/);
});
