// The texts of a config and of config.json go into the core once in a thread, however often they are needed.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Instance } from '../../../dist/engine/instance.js';
import { memoryStream, modelFor, quantizerFor, tinyLlama } from '../scratch.mjs';

/** How often each of `texts` is an argument of a bound call, by instance in the order of their first calls. */
function crossings(t, texts) {
  const { run } = Instance.prototype;
  const counts = new Map();
  const patched = new WeakSet();
  const note = (instance, args) => {
    for (const [name, text] of Object.entries(texts))
      if (args.includes(text)) {
        const row = counts.get(instance) ?? {};
        counts.set(instance, { ...row, [name]: (row[name] ?? 0) + 1 });
      }
  };
  const watchMethods = (instance, object) => {
    const methods = Object.getPrototypeOf(object);
    if (patched.has(methods)) return;
    patched.add(methods);
    for (const name of Object.getOwnPropertyNames(methods)) {
      const method = methods[name];
      if (name === 'constructor' || typeof method !== 'function') continue;
      methods[name] = function (...args) {
        note(instance, args);
        return method.apply(this, args);
      };
    }
  };
  const watched = (instance, value, owner) =>
    new Proxy(value, {
      apply: (_, __, args) => {
        note(instance, args);
        const made = value.apply(owner, args);
        if (typeof made?.delete === 'function') watchMethods(instance, made);
        return made;
      },
      construct: (_, args) => {
        note(instance, args);
        const object = new value(...args);
        watchMethods(instance, object);
        return object;
      },
      get: (_, key) => (typeof value[key] === 'function' ? watched(instance, value[key], value) : value[key]),
    });
  Instance.prototype.run = function (bound) {
    return run.call(this, (module) =>
      bound(
        new Proxy(module, {
          get: (_, key) =>
            typeof module[key] === 'function' ? watched(this, module[key], module) : Reflect.get(module, key),
        }),
      ),
    );
  };
  t.after(() => {
    Instance.prototype.run = run;
  });
  return () => [...counts.values()];
}

const modelText = readFileSync(join(tinyLlama, 'config.json'), 'utf8');
const weight = { dtype: 'int4', qscheme: 'per_group', group_size: 64, ch_axis: -1, symmetric: true };
const config = { global_quant_config: { weight }, exclude: ['lm_head'] };

test('a plain run gives each text to the core once', async (t) => {
  const text = JSON.stringify(config);
  const found = crossings(t, { config: text, model: modelText });
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  await quantizer.quantizeModel(model, text, { target: memoryStream().stream, format: 'fake-quantized' });
  assert.deepEqual(found(), [{ model: 1, config: 1 }]);
});

test('what is run with a model gives config.json to the core no second time', async (t) => {
  const found = crossings(t, { model: modelText });
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const language = quantizer.languageModel(model);
  const tokens = [3, 9, 27, 81, 43, 29];
  for (let turn = 0; turn < 2; ++turn) await language.evaluate({ tokens: { data: tokens, shape: [1, 6] } });
  await language.generate({ tokens, count: 2 });
  await quantizer.compare(model, model);
  await quantizer.plan(model, config, { format: 'compressed-tensors' });
  assert.deepEqual(found(), [{ model: 1 }]);
});

test('a calibrated run gives each text to the core once, and the config once to the core that calibrates', async (t) => {
  const text = JSON.stringify({ ...config, algo_config: [{ name: 'gptq' }] });
  const found = crossings(t, { config: text, model: modelText });
  const quantizer = await quantizerFor(t);
  const model = await modelFor(t, quantizer, tinyLlama);
  const tokens = { data: Int32Array.from({ length: 128 }, (_, i) => (i * 7) % 100), shape: [2, 64] };
  await quantizer.quantizeModel(model, text, {
    target: memoryStream().stream,
    format: 'fake-quantized',
    calibration: { tokens },
  });
  assert.deepEqual(found(), [{ model: 1, config: 1 }, { config: 1 }]);
});
