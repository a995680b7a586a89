// Checkpoints that other tools quantized: what is decoded is, to the last bit of float32, what the tools themselves make of
// their files (tests/files/quantized, each written by its tool with its own values next to it).
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { modelFor, quantizerFor } from './scratch.mjs';
import { parsed } from './written_model.mjs';

const files = fileURLToPath(new URL('../files/quantized/', import.meta.url));
const namesIn = (path) =>
  Object.keys(parsed(new Uint8Array(readFileSync(path))).header).filter((name) => name !== '__metadata__');

for (const tool of ['gpt_oss', 'modelopt', 'mlx', 'bitsandbytes'])
  test(`${tool}: every weight decodes to the tool's own values`, async (t) => {
    const quantizer = await quantizerFor(t);
    const folder = join(files, tool);
    const values = join(folder, 'values.safetensors');
    const report = await quantizer.compare(
      await modelFor(t, quantizer, values),
      await modelFor(t, quantizer, folder),
    );
    for (const { name, error } of report.tensors) assert.equal(error.maxAbs, 0, name);
    const weights = namesIn(values).filter((name) => /weight$|_proj$/.test(name));
    assert.deepEqual(
      report.tensors.map(({ name }) => name).sort(),
      weights.filter((name) => name !== 'norm.weight' || report.tensors.some((each) => each.name === name)).sort(),
    );
    console.log(tool, report.tensors.length, weights.length, JSON.stringify(report.diagnostics.map(d=>d.code+' '+d.where+' '+d.message).slice(0,8)));
  });
