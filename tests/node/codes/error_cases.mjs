// For each code of an error (src/core/codes/error.def): a call that fails with it. A case gets a `Provoker` and rejects, or resolves to
// the code that the command line prints.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createQuantizer } from '../../../dist/node.js';
import { cliPath } from '../cli/process.mjs';
import { memoryStream, tinyLlama } from '../scratch.mjs';
import { noise, safetensors } from '../written_model.mjs';
import { group, quark, weight } from './config_cases.mjs';

const sample = join(tinyLlama, 'model.safetensors');
const square = (data) => ({ 'a.weight': { dtype: 'F32', shape: [32, 32], data } });
const withValue = (value) => square(noise(1024).fill(value, 5, 6));
const data = noise(6);

/** A source that fails after some reads. */
function failingSource(reads) {
  const bytes = new Uint8Array(readFileSync(sample));
  return {
    size: bytes.length,
    name: 'mine.safetensors',
    async read(offset, length) {
      if (--reads < 0) throw new Error('cable pulled');
      return bytes.subarray(offset, offset + length);
    },
  };
}

/** A run without workers whose WebAssembly memories are overwritten on the way, as a mistake in the module would do it. */
async function crashedEngine(c) {
  const { instantiate } = WebAssembly;
  const memories = [];
  WebAssembly.instantiate = async (...args) => {
    const instance = await instantiate.apply(WebAssembly, args);
    memories.push(Object.values(instance.exports).find((value) => value instanceof WebAssembly.Memory));
    return instance;
  };
  try {
    const quantizer = await createQuantizer({ threads: 0 });
    c.t.after(() => quantizer[Symbol.asyncDispose]());
    const model = await quantizer.open(tinyLlama);
    const { stream } = memoryStream(async () => {
      for (const { buffer } of memories) new Uint8Array(buffer).fill(0xff);
    });
    await quantizer.quantizeModel(model, 'int8', { target: stream });
    await quantizer.plan(model, 'int8'); // a small run may have nothing left to compute after its first write
  } finally {
    WebAssembly.instantiate = instantiate;
  }
}

/** The code that the command prints with --json. `during`: what happens to the process once it has read its input. */
async function commandCode(args, { env = {}, signal } = {}) {
  const child = spawn(process.execPath, [cliPath, ...args, '--json'], { env: { ...process.env, ...env } });
  let text = '';
  child.stdout.on('data', (part) => {
    text += part;
  });
  const ended = once(child, 'close');
  if (signal) {
    // More than a pipe holds: it is gone once the command reads.
    await new Promise((read) => child.stdin.write(' '.repeat(4 * 2 ** 20), read));
    child.kill(signal);
  } else {
    child.stdin.end();
  }
  await ended;
  return JSON.parse(text).error.code;
}

export const errorCases = {
  'argument-invalid': () => createQuantizer({ threads: -1 }),
  'json-invalid': (c) => c.plan(c.changedText('config.json', '{'), 'int8'),
  'config-invalid': (c) => c.plan(tinyLlama, quark(weight({ dtype: 'int99' }))),
  'spec-invalid': (c) => c.quantizer.quantize({ data, shape: [6] }, { dtype: 'int99' }),
  'shape-mismatch': (c) => {
    const quantized = c.quantizer.quantize({ data, shape: [6] }, { dtype: 'int8', qscheme: 'per_tensor' });
    return c.quantizer.dequantize({ ...quantized, shape: [7] });
  },
  'group-size-invalid': (c) => c.plan(tinyLlama, quark(group({ group_size: 48 }))),
  'value-not-finite': (c) => c.run(withValue(Number.NaN), 'int8'),
  'value-overflow': (c) => c.run(withValue(1e6), quark({ dtype: 'float16' }), { format: 'fake-quantized' }),
  'format-unknown': (c) => c.open(new File([new Uint8Array(4096).fill(7)], 'model.bin')),
  'file-truncated': (c) => {
    const path = join(c.folder(), 'model.safetensors');
    writeFileSync(path, readFileSync(sample));
    truncateSync(path, 100_000);
    return c.open(path);
  },
  'file-invalid': (c) => {
    const bytes = Buffer.from(safetensors(square(noise(1024))));
    bytes.write('[', 8);
    return c.open(new File([bytes], 'model.safetensors'));
  },
  'file-too-large': async (c) => {
    const folder = c.without('tokenizer.json');
    writeFileSync(join(folder, 'tokenizer.json'), '');
    truncateSync(join(folder, 'tokenizer.json'), 3 * 2 ** 30);
    return (await c.open(folder)).siblingFile('tokenizer.json');
  },
  'tensor-missing': (c) => {
    const map = { 'a.weight': 'model-00001-of-00002.safetensors', 'b.weight': 'model-00002-of-00002.safetensors' };
    const folder = c.folder();
    writeFileSync(join(folder, 'model.safetensors.index.json'), JSON.stringify({ weight_map: map }));
    writeFileSync(join(folder, 'model-00001-of-00002.safetensors'), safetensors(square(noise(1024))));
    writeFileSync(join(folder, 'model-00002-of-00002.safetensors'), safetensors({}));
    return c.open(folder);
  },
  'tensor-duplicate': (c) => {
    const file = (name) => new File([safetensors(square(noise(1024)))], name);
    return c.open([file('model-00001-of-00002.safetensors'), file('model-00002-of-00002.safetensors')]);
  },
  'dtype-unsupported': (c) =>
    c.quantizer.quantize({ data, dtype: 'I8', shape: [6] }, { dtype: 'int8', qscheme: 'per_tensor' }),
  'format-unsupported': (c) => c.plan(tinyLlama, 'int3_wo_64'),
  'nothing-quantized': (c) => c.run(tinyLlama, quark(weight(), { exclude: ['*'] })),
  'memory-budget': () => createQuantizer({ memoryBudgetBytes: 1024 }),
  'not-implemented': async (c) => {
    const folder = c.changed('config.json', (config) => ({ ...config, hidden_act: 'relu6' }));
    return c.quantizer.languageModel(await c.open(folder)).evaluate({ tokens: { rows: [[1, 2, 3]] } });
  },
  'state-invalid': async (_c) => {
    const quantizer = await createQuantizer({ threads: 0 });
    await quantizer[Symbol.asyncDispose]();
    return quantizer.open(tinyLlama);
  },
  'source-invalid': (c) => c.open(join(c.folder(), 'nothing')),
  'target-invalid': (c) => c.into(tinyLlama, 'int8', { target: 7 }),
  'target-exists': (c) => c.into(tinyLlama, 'int8', { target: c.without('tokenizer.json') }),
  'read-failed': (c) => c.open(failingSource(0)),
  'write-failed': async (c) => {
    const { stream } = memoryStream(() => Promise.reject(new Error('disk full')));
    return c.into(tinyLlama, 'int8', { target: stream });
  },
  'engine-unavailable': () => createQuantizer({ wasmUrl: '/no/such/file.wasm' }),
  'engine-crashed': crashedEngine,
  'worker-crashed': async (c) => {
    const quantizer = await createQuantizer({ threads: 1, workerUrl: new URL('file:///no/such/worker.js') });
    c.t.after(() => quantizer[Symbol.asyncDispose]());
    return quantizer.quantizeModel(await quantizer.open(tinyLlama), 'int8', { target: join(c.folder(), 'out') });
  },
  usage: () => commandCode(['quantize']),
  interrupted: () => commandCode(['config', 'check', '-'], { signal: 'SIGINT' }),
  terminated: () => commandCode(['config', 'check', '-'], { signal: 'SIGTERM' }),
  // A mistake in the program: a function of the host that fails where it never does.
  internal: () => {
    const mistake = 'data:text/javascript,Number.prototype.toFixed=()=>{throw new TypeError("mistake")}';
    return commandCode(['formats', sample], { env: { NODE_OPTIONS: `--import "${mistake}"` } });
  },
};
