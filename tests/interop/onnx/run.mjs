// Models run by onnxruntime-node and onnxruntime-web, and their outputs compared.
import { existsSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { ort, web } from './peers.mjs';

/** Outputs of all feeds, one after another. `level`: of optimization in Node, or "web": onnxruntime-web without any. */
export async function run(path, feeds, level) {
  const options = { logSeverityLevel: 3, intraOpNumThreads: 1, graphOptimizationLevel: level };
  const session = await (level === 'web' ? webSession(path, options) : ort.InferenceSession.create(path, options));
  const values = [];
  for (const feed of feeds) {
    const outputs = await session.run(feed);
    for (const name of session.outputNames) values.push(outputs[name].data);
  }
  await session.release();
  return values;
}

function webSession(path, options) {
  const data = `${path}_data`;
  const externalData = existsSync(data) ? [{ path: basename(data), data: new Uint8Array(readFileSync(data)) }] : [];
  return web.InferenceSession.create(new Uint8Array(readFileSync(path)), {
    ...options,
    executionProviders: ['wasm'], // the default is the first of a table that both runtimes share: onnxruntime-node's
    graphOptimizationLevel: 'disabled',
    externalData,
  });
}

/** Largest difference over the largest value, and the mean of squares likewise. */
export function compare(actual, expected) {
  let largest = 0;
  let difference = 0;
  let signal = 0;
  let noise = 0;
  if (actual.length !== expected.length) return { relative: Number.POSITIVE_INFINITY, decibels: 0 };
  for (const [i, values] of expected.entries()) {
    if (actual[i].length !== values.length) return { relative: Number.POSITIVE_INFINITY, decibels: 0 };
    for (let k = 0; k < values.length; ++k) {
      const off = Math.abs(actual[i][k] - values[k]);
      largest = Math.max(largest, Math.abs(values[k]));
      difference = Number.isNaN(off) ? Number.POSITIVE_INFINITY : Math.max(difference, off);
      signal += values[k] ** 2;
      noise += off ** 2;
    }
  }
  return { relative: difference / largest, decibels: 10 * Math.log10(signal / noise) };
}

/**
 * Outputs of `target` at each level, and their largest relative difference from those of `reference`, run without
 * optimization by the same runtime: the two take sums in different orders, and static values then round the other way.
 */
export async function differences(target, reference, feeds, levels) {
  const expected = { disabled: await run(reference, feeds, 'disabled') };
  if (levels.includes('web')) expected.web = await run(reference, feeds, 'web');
  const rows = [];
  for (const level of levels) {
    const actual = await run(target, feeds, level);
    rows.push({ level, actual, relative: compare(actual, expected[level] ?? expected.disabled).relative });
  }
  return rows;
}
