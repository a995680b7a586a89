// Our ONNX files in onnxruntime-node and onnxruntime-web. Each case quantizes the weights of a model one way, with the
// library and, for comparison byte by byte, with the native tool, and runs the library's file beside the same model with
// the dequantized weights in float and, where layers have quantized inputs or outputs, these through eight bits and back:
// outputs must agree to 1e-4 of the largest value. A line per case with the error against the original; exit code 1 when
// one differs. Scales of static inputs and outputs are found by capturing what ONNX Runtime computes.
//   node tests/interop/onnx/onnx.mjs [part of a case's name]
// The runtimes and the models come from npm (peers.mjs), tiny-llama is WASMQUANT_TINY_LLAMA_ONNX, a path, and left out
// without it; npm test needs none of them.
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createQuantizer } from '../../../dist/node.js';
import { main } from '../../setup/command.mjs';
import { forms, languageModelOnly, models } from './cases.mjs';
import { multipliesSignedExactly } from './products.mjs';
import { compare, differences, run } from './run.mjs';
import { captured, own, quantizeByLibrary, runTool, weightsOf } from './written.mjs';

/**
 * Batch norms folded, all weights in float: the outputs are the original's. Then int8 per channel, which must load. Returns
 * what is to be said; throws where outputs differ.
 */
async function foldNorms(quantizer, path, target, original, feeds, folded) {
  const weight = { dtype: 'int8', qscheme: 'per_channel', ch_axis: 0, symmetric: true };
  const base = { global_quant_config: { weight }, pre_quant_opt_config: [{ name: 'merge_batch_norm' }] };
  let said = '';
  for (const exclude of [['*'], []]) {
    const model = await quantizer.open(path);
    const options = { target, overwrite: true, onnx: { qdq: true } };
    const { diagnostics } = await quantizer.quantizeModel(model, { ...base, exclude }, options);
    await model.close();
    const note = diagnostics.find(({ code }) => code === 'norms-folded')?.message ?? 'no norm is folded';
    if (!note.startsWith(folded)) throw new Error(`${note}, not ${folded}`);
    const { relative, decibels } = compare(await run(target, feeds, 'disabled'), original);
    if (exclude.length === 0) return `${said} int8 SQNR ${decibels.toFixed(1)} dB`;
    if (!(relative <= 1e-4)) throw new Error(`folded outputs differ by ${relative.toExponential(1)}`);
    said = `${note}: ${relative.toExponential(1)}`;
  }
}

/**
 * One weight after another: in a deep network a rounding that falls the other way makes others fall so, and the sums of
 * floats that cause it are taken in different orders.
 */
async function runAlone(path, spec, target, reference, feeds) {
  let worst = 0;
  let count = 0;
  for (const { name } of weightsOf(path)) {
    const summary = own('quantize', path, target, reference, ...spec.split(' '), `tensor=${name}`);
    if (!summary.startsWith('weights 1')) continue;
    const [{ relative }] = await differences(target, reference, feeds, ['disabled']);
    worst = Math.max(worst, relative);
    ++count;
  }
  return { relative: count > 0 ? worst : Number.POSITIVE_INFINITY, count };
}

main(async () => {
  const quantizer = await createQuantizer({ threads: 1 });
  const work = mkdtempSync(join(tmpdir(), 'wasmquant-onnx-'));
  const scales = join(work, 'scales.txt');
  const version = `version=${quantizer.version.library}`;
  const only = process.argv[2];
  let passed = 0;
  let failed = 0;
  let left = 0;
  const isExact = await multipliesSignedExactly();
  if (!isExact) {
    process.stdout.write(
      'onnxruntime-node saturates products of uint8 by int8 on this processor: dynamic int8 is judged in onnxruntime-web\n',
    );
  }
  try {
    for (const [
      modelName,
      { bytes, path = join(work, 'model.onnx'), alone, nested, norms, normsAlone, feeds: makeFeeds },
    ] of Object.entries(models)) {
      if (bytes) writeFileSync(path, bytes);
      if (!existsSync(path)) throw new Error(`no ${path}`);
      const feeds = makeFeeds();
      const original = await run(path, feeds, 'disabled');
      for (const [formName, spec] of Object.entries(forms)) {
        const name = `${modelName}, ${formName}`;
        if ((only && !name.includes(only)) || normsAlone) continue;
        if (!/^(tiny-llama|two)/.test(modelName) && languageModelOnly.test(formName)) continue;
        if (nested && spec.includes('static')) continue;
        const isJudgedInNode = isExact || !formName.startsWith('dynamic int8');
        if (alone && !isJudgedInNode) {
          process.stdout.write(`${name.padEnd(40)} left out\n`);
          ++left;
          continue;
        }
        const target = join(work, 'quantized.onnx');
        const reference = join(work, 'reference.onnx');
        let problem = '';
        let summary = '';
        const judge = (relative, where) => {
          const text = ` ${where} ${relative.toExponential(1)}`;
          if (relative <= 1e-4) summary += text;
          else problem += ` outputs differ:${text};`;
        };
        try {
          const values = /static=(\S+)/.exec(spec)?.[1];
          const calibration = values && (await captured(quantizer, path, feeds, values));
          if (calibration) writeFileSync(scales, calibration.lines);
          const words = spec.split(' ').map((word) => (word.startsWith('static=') ? `scales=${scales}` : word));
          const { stdout, stderr } = runTool('quantize', path, target, reference, ...words, version);
          const { output, worst } = await quantizeByLibrary(
            quantizer,
            path,
            spec,
            target,
            `\n${stderr}`,
            calibration?.batches,
          );
          if (alone && formName.startsWith('dynamic')) {
            const { relative, count } = await runAlone(path, spec, target, reference, feeds);
            summary = `${count} weights one by one`;
            judge(relative, 'disabled');
          } else {
            summary = `${stdout} least SQNR of a weight ${worst.toFixed(1)} dB`;
            // What is fused with dequantized weights multiplies in other ways (MatMulNBits at accuracy level 4).
            const levels = ['disabled', ...(/^q\d|^dynamic/.test(formName) ? ['all'] : [])];
            // onnxruntime-web finds no external data of graphs inside nodes.
            if (!nested || formName !== 'external data') levels.push('web');
            for (const { level, actual, relative } of await differences(output, reference, feeds, levels)) {
              if (isJudgedInNode || level === 'web') judge(relative, level);
              if (level === 'disabled') summary += ` SQNR ${compare(actual, original).decibels.toFixed(1)} dB`;
            }
            summary += ` file ${statSync(target).size}`;
          }
        } catch (error) {
          problem = error.message;
        }
        for (const path of [`${target}_data`, `${target}.library`]) rmSync(path, { recursive: true, force: true });
        if (problem) ++failed;
        else ++passed;
        process.stdout.write(`${name.padEnd(40)} ${problem ? 'FAILED' : 'ok'}  ${problem || summary}\n`);
      }
      const name = `${modelName}, batch norms`;
      if (!norms || (only && !name.includes(only))) continue;
      try {
        const said = await foldNorms(quantizer, path, join(work, 'folded.onnx'), original, feeds, norms);
        process.stdout.write(`${name.padEnd(40)} ok  ${said}\n`);
        ++passed;
      } catch (error) {
        process.stdout.write(`${name.padEnd(40)} FAILED  ${error.message}\n`);
        ++failed;
      }
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
    await quantizer[Symbol.asyncDispose]();
  }
  process.stdout.write(`onnx: ${passed} passed, ${failed} failed${left > 0 ? `, ${left} left out` : ''}\n`);
  return failed > 0 ? 1 : 0;
});
