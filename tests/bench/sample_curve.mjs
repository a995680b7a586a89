// node tests/bench/sample_curve.mjs: measures the curve that the page shows before a model is opened, and writes
// web/demo/first/sample_curve.json. A test of the page measures points of it again.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Tokenizer } from '@huggingface/tokenizers';
import { createQuantizer } from 'wasmquant';
import { main, root, say } from '../setup/command.mjs';

const sample = join(root, 'tests/files/tiny-llama');
const output = join(root, 'web/demo/first/sample_curve.json');

/** Names as the page shows them. */
const plain = {
  q8_0: 'Q8_0',
  q6_k: 'Q6_K',
  q5_k_m: 'Q5_K_M',
  q4_k_m: 'Q4_K_M',
  q3_k_m: 'Q3_K_M',
  int8: 'int8',
  int4_wo_32: 'int4 g32',
  int4_wo_128: 'int4 g128',
  mxfp4: 'MXFP4',
};
const calibrated = { int4_wo_64: 'int4 g64, calibrated', mxfp4: 'MXFP4, calibrated' };

/** Texts of the page, as its build makes them (web/demo/vite.config.ts): the sample's tokens are bytes. */
const tokenFiles = { calibrate: 'calib_tokens', measure: 'validation_tokens' };

export function sampleText(use, sequences) {
  const json = (name) => JSON.parse(readFileSync(join(sample, name), 'utf8'));
  const tokenizer = new Tokenizer(json('tokenizer.json'), json('tokenizer_config.json'));
  const file = readFileSync(join(root, `tests/files/tiny-llama-reference/${tokenFiles[use]}.safetensors`));
  const ids = new Int32Array(file.buffer.slice(file.byteOffset + 8 + Number(file.readBigUInt64LE(0))));
  const text = Buffer.from(ids.filter((id) => id < 256)).toString('utf8');
  return { text, tokenizer, ...(sequences && { sequences }) };
}

/** Size and loss of the sample with a config on all windows of the text. */
export async function measureSample(quantizer, model, config, { isCalibrated = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-curve-'));
  try {
    const calibration = { tokens: sampleText('calibrate', 32) };
    const { totals, format } = await quantizer.plan(model, config);
    const target = join(folder, format === 'gguf' ? 'model.gguf' : 'model');
    await quantizer.quantizeModel(model, config, { target, ...(isCalibrated && { calibration }) });
    const quantized = await quantizer.open(target);
    const found = await quantizer
      .languageModel(quantized, { source: model })
      .evaluate({ tokens: sampleText('measure') });
    await quantized.close();
    return { bytes: totals.bytesAfter, loss: found.bitsPerByte };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function calibratedConfig(quantizer, name) {
  const { config } = quantizer.presets().find((preset) => preset.name === name);
  return { ...config, algo_config: [{ name: 'awq' }, { name: 'gptq' }] };
}

/** The frontier, and the calibrated point that loses least. */
export function marked(points, original) {
  const beats = (a, b) => a !== b && a.bytes <= b.bytes && a.loss <= b.loss;
  const [best] = points.filter(({ isCalibrated }) => isCalibrated).sort((a, b) => a.loss - b.loss);
  return points.map((point) => ({
    ...point,
    onFrontier: ![...points, original].some((other) => beats(other, point)),
    ...(point === best && { isBest: true }),
  }));
}

if (process.argv[1] === import.meta.filename)
  main(async () => {
    const quantizer = await createQuantizer();
    const model = await quantizer.open(sample);
    const found = await quantizer.languageModel(model).evaluate({ tokens: sampleText('measure') });
    const original = { bytes: model.bytes, loss: found.bitsPerByte };
    const points = [];
    for (const [preset, name] of Object.entries(plain)) {
      points.push({ preset, name, ...(await measureSample(quantizer, model, preset)) });
      say(`${name}: ${points.at(-1).bytes} bytes, ${points.at(-1).loss.toFixed(4)} bits per byte`);
    }
    for (const [preset, name] of Object.entries(calibrated)) {
      const config = calibratedConfig(quantizer, preset);
      const measured = await measureSample(quantizer, model, config, { isCalibrated: true });
      points.push({ preset, name, ...measured, isCalibrated: true });
      say(`${name}: ${measured.bytes} bytes, ${measured.loss.toFixed(4)} bits per byte`);
    }
    const { parameters } = (await quantizer.plan(model, 'int8')).totals.coverage;
    const whole = { parameters, windows: found.sequences, original, points: marked(points, original) };
    writeFileSync(output, `${JSON.stringify(whole, null, 2)}\n`);
    await model.close();
    await quantizer[Symbol.asyncDispose]();
  });
