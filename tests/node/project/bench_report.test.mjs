// What npm run bench makes of its measurements: which rows get a note on what bounds them, and that a part that was not run is
// left out.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { boundOf, markdownOf } from '../../bench/bench_report.mjs';

test('the limit of a kernel below half of the speed of memcpy is named', () => {
  const row = (ratio, gbps, inCache) => boundOf({ gbps, ratio_to_memcpy: ratio, gbps_in_cache: inCache });
  assert.match(row(0.3, 3, 3.5), /^arithmetic: 3\.50 GB\/s/);
  assert.match(row(0.3, 3, 9), /^memory: 9\.00 GB\/s/);
  assert.equal(row(0.5, 6, 7), '');
  assert.equal(boundOf({ gflops: 30 }), '');
});

test('a part that did not run has no section, and one that ran has its rows', () => {
  const machine = { cpu: 'a processor', cores: 2, node: '20.0.0', date: '2026-01-01', load: [0.5, 1] };
  const wasm = [
    { name: 'int4 per_group 128', gbps: 4, ratio_to_memcpy: 0.3, gbps_in_cache: 4.4 },
    { name: 'layer', gflops: 30 },
  ];
  const native = [{ name: 'int4 per_group 128', gbps: 8, ratio_to_memcpy: 0.6, gbps_in_cache: 9 }];
  const kernels = { wasm, native, javascript: [], torch: null };
  const row = { command: '--help', milliseconds: 70, cpuMilliseconds: 66, toNode: 1.4, cpuToNode: 1.32 };
  const start = { node: 'v20.0.0', runs: 3, bareMilliseconds: 50, rows: [row] };
  const text = markdownOf({ machine, kernels, start, files: null, gguf: null, chromium: null });
  assert.match(text, /\| int4 per_group 128 \| 4\.00 \| 0\.30 \| {2}\| 8\.00 \| {2}\| {2}\| arithmetic: 4\.40 GB\/s/);
  assert.match(text, /\| --help \| 70 \| 1\.40 \| 66 \| 1\.32 \|/);
  assert.match(text, /\| layer \| 30\.0 \|/);
  assert.doesNotMatch(text, /## (Whole files|Memory|Chromium|GGUF)/);
});
