// Time of a run: statistics of turns with runtimes that are made up, then ONNX Runtime itself, by the library and the command line.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import * as ort from 'onnxruntime-web';
import { speedOf, spreadOf } from '../../../dist/model/onnx_speed.js';
import { measureSpeed } from '../../../dist/onnxruntime/onnxruntime_node.js';
import { cli, cliJson } from '../cli/process.mjs';
import { files, modelFor, quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';
import { graph, model as modelBytes, node, noise, tensor, wordModel } from './model.mjs';

ort.env.wasm.numThreads = 1;

/** Sessions whose runs take `times` milliseconds, in the order in which they are made, on a machine whose speed `slowness` changes. */
function madeUp(times, slowness = () => 1) {
  const seen = { options: [], released: 0, calls: [], runs: 0 };
  const create = async (_bytes, options) => {
    const number = seen.options.push(options) - 1;
    const timed = async (feed, _names, runs) => {
      seen.calls.push({ number, feed, runs });
      let sum = 0;
      for (let run = 0; run < runs; ++run) sum += times[number] * slowness(seen.runs++);
      return sum;
    };
    return { timed, run: () => assert.fail('the session times itself'), release: async () => seen.released++ };
  };
  return { seen, runtime: { InferenceSession: { create } } };
}

const words = async (t, quantizer) => modelFor(t, quantizer ?? (await quantizerFor(t)), wordModel(50));

test('a spread is the median and the quartiles, in any order', () => {
  assert.deepEqual(spreadOf([5, 1, 4, 2, 3]), { median: 3, low: 2, high: 4 });
  assert.deepEqual(spreadOf([4, 1, 2, 3]), { median: 2.5, low: 1.75, high: 3.25 });
  assert.deepEqual(spreadOf([7]), { median: 7, low: 7, high: 7 });
});

test('a verdict needs 5 % and quartiles on one side', () => {
  const verdictOf = (original, quantized) => speedOf({ original, quantized }).verdict;
  const ones = Array(7).fill(1);
  assert.equal(verdictOf(ones, Array(7).fill(1.3)), 'slower');
  assert.equal(verdictOf(ones, Array(7).fill(0.5)), 'faster');
  assert.equal(verdictOf(ones, Array(7).fill(1.04)), 'alike');
  assert.equal(verdictOf(ones, [0.5, 0.6, 0.9, 1.2, 1.3, 1.4, 1.5]), 'alike');
  // The ratio is that of the same turn: a slow turn of both is no difference.
  const { ratio } = speedOf({ original: [1, 10, 100], quantized: [2, 20, 200] });
  assert.deepEqual(ratio, { median: 2, low: 2, high: 2 });
});

test('models run in turns: a machine that becomes ever slower does not change the ratio', async (t) => {
  const model = await words(t);
  const { seen, runtime } = madeUp([2, 3], (run) => 1 + run / 200);
  const speed = await measureSpeed(runtime, model, model, [{ a: 1 }, { a: 2 }]);
  assert.ok(Math.abs(speed.ratio.median - 1.5) < 0.03, `${speed.ratio.median}`);
  assert.equal(speed.verdict, 'slower');
  assert.ok(speed.milliseconds.high > 1.1 * speed.milliseconds.low, 'the machine did become slower');
  assert.equal(speed.turns, 31);
  assert.equal(seen.released, 2);
  assert.ok(seen.options.every(({ intraOpNumThreads }) => intraOpNumThreads === 1));
  const counted = seen.calls.filter(({ runs }) => runs > 1);
  assert.deepEqual(
    counted.slice(0, 6).map(({ number }) => number),
    [0, 1, 1, 0, 0, 1],
  );
  assert.deepEqual(
    counted.slice(0, 6).map(({ feed }) => feed.a),
    [1, 1, 2, 2, 1, 1],
  );
});

test('a turn takes 15 ms at least, after 300 ms of runs that do not count', async (t) => {
  const model = await words(t);
  const { seen, runtime } = madeUp([2, 0.01]);
  await measureSpeed(runtime, model, model, [{}]);
  const runsOf = (number) => new Set(seen.calls.filter((call) => call.number === number).map(({ runs }) => runs));
  assert.deepEqual([...runsOf(0)], [1, 8]);
  assert.deepEqual([...runsOf(1)], [1, 1000]);
  const first = seen.calls.findIndex(({ number }) => number === 1);
  assert.equal(first, 1 + 300 / 2);
});

test('slow models have fewer turns of one run; an abort ends them, and sessions are released', async (t) => {
  const model = await words(t);
  const { seen, runtime } = madeUp([2000, 900]);
  const { ratio, turns, verdict } = await measureSpeed(runtime, model, model, [{}]);
  assert.deepEqual([ratio.median, turns, verdict], [0.45, 7, 'faster']);
  assert.ok(seen.calls.every(({ runs }) => runs === 1));
  const controller = new AbortController();
  const stopped = madeUp([2, 2], (run) => {
    if (run === 50) controller.abort();
    return 1;
  });
  await assert.rejects(measureSpeed(stopped.runtime, model, model, [{}], { signal: controller.signal }), {
    name: 'AbortError',
  });
  assert.equal(stopped.seen.released, 2);
  await assert.rejects(measureSpeed(runtime, model, model, []), { code: 'argument-invalid', where: 'feeds' });
  await assert.rejects(measureSpeed({}, model, model, [{}]), { code: 'argument-invalid', where: 'runtime' });
  await assert.rejects(measureSpeed(runtime, model, {}, [{}]), { code: 'argument-invalid', where: 'quantized' });
});

/** So many square products one after another. */
function products(count) {
  const size = 128;
  const at = (i) => (i === 0 ? 'x' : i === count ? 'y' : `h${i}`);
  return modelBytes(
    graph({
      nodes: Array.from({ length: count }, (_, i) =>
        node('MatMul', [at(i), `w${i}`], [at(i + 1)], { name: `/layer.${i}/MatMul` }),
      ),
      tensors: Array.from({ length: count }, (_, i) => tensor(`w${i}`, 'F32', [size, size], noise(size * size, i))),
      inputs: [['x', 'F32', ['n', size]]],
      outputs: [['y', 'F32', ['n', size]]],
    }),
  );
}

test('ONNX Runtime: a model of eight products is slower than one of one', async (t) => {
  const quantizer = await quantizerFor(t);
  const [one, eight] = [await modelFor(t, quantizer, products(1)), await modelFor(t, quantizer, products(8))];
  const feeds = [{ x: new ort.Tensor('float32', noise(64 * 128, 7), [64, 128]) }];
  const { ratio, verdict, milliseconds, original } = await measureSpeed(ort, one, eight, feeds);
  assert.equal(verdict, 'slower');
  assert.ok(ratio.median > 2 && ratio.median < 32, `${ratio.median}`);
  assert.ok(original.low <= original.median && original.median < milliseconds.median);
});

test('curve and compare measure the speed of each scheme, if asked', async (t) => {
  const quantizer = await quantizerFor(t);
  const model = await words(t, quantizer);
  const options = { schemes: ['int8', 'int4_wo_32'], runtime: ort, windows: 1 };
  const { points, original } = await quantizer.curve(model, { ...options, measureSpeed: true });
  assert.ok(original.milliseconds.median > 0);
  for (const { speed, loss } of points) {
    assert.ok(loss > 0 && speed.milliseconds.median > 0);
    assert.ok(speed.ratio.low <= speed.ratio.median && speed.ratio.median <= speed.ratio.high);
  }
  const without = await quantizer.curve(model, options);
  assert.ok(!('milliseconds' in without.original) && without.points.every((point) => !('speed' in point)));
  const { outputs } = await quantizer.compare(model, model, { runtime: ort, measureSpeed: true });
  assert.ok(outputs.speed.ratio.median > 0.2 && outputs.speed.ratio.median < 5);
  await assert.rejects(quantizer.compare(model, model, { measureSpeed: true }), { where: 'runtime' });
  await assert.rejects(quantizer.curve(model, { ...options, runtime: undefined, measureSpeed: true }), {
    code: 'argument-invalid',
    where: 'runtime',
  });
  for (const source of [tinyLlama, join(files, 'forward/bert')]) {
    const other = await modelFor(t, quantizer, source);
    await assert.rejects(quantizer.curve(other, { measureSpeed: true }), /for ONNX models.*safetensors is not here/);
  }
});

test('curve --measure-speed and compare --measure-speed', async (t) => {
  const path = join(scratchFolder(t), 'words.onnx');
  writeFileSync(path, wordModel(50));
  const options = ['curve', path, '--schemes', 'int8', '--windows', '1', '--measure-speed'];
  const { stdout, stderr } = await cli(options);
  assert.equal(stderr, '');
  assert.match(stdout, /a run +speed/);
  assert.match(stdout, /original .* ms \(\S+ to \S+\)/);
  assert.match(stdout, /int8 .* ms \(\S+ to \S+\) +(as fast|\d\.\d\d × (faster|slower))/);
  assert.equal(/smaller, not faster/.test(stdout), !/× faster/.test(stdout));
  assert.match(stdout, /on one thread: median and quartiles/);
  const { document } = await cliJson(options);
  assert.ok(document.points[0].speed.ratio.median > 0);
  const compared = await cli(['compare', path, path, '--measure-speed']);
  assert.match(compared.stdout, / ms a run, .* the original/);
  const refused = await cliJson(['curve', tinyLlama, '--measure-speed']);
  assert.equal(refused.document.error.code, 'argument-invalid');
  assert.match(refused.document.error.message, /ONNX models/);
});
