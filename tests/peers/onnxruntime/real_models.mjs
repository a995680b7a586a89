// ONNX models as people have them, next to what onnxruntime's own tools make of them: size of the file and error of the outputs, on inputs
// that are made up by type and shape.
//   node tests/peers/onnxruntime/real_models.mjs FOLDER      every .onnx file in FOLDER and below; prints a table
// A result that is larger than its model without the plan's saying so ends it with 1.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import * as ort from 'onnxruntime-web';
import { createQuantizer } from 'wasmquant';
import { main, root } from '../../setup/command.mjs';

const presets = ['int8', 'int4_wo_32', 'int8_dynamic'];
const python = join(root, '.peers-python/onnxruntime/bin/python');
const script = join(import.meta.dirname, 'own_tools.py');

const megabytes = (bytes) => (bytes / 1e6).toFixed(2);
const percent = (error) => `${(100 * error).toFixed(error < 0.01 ? 2 : 1)} %`;

/** Size and error, as a cell of the table. */
async function cellOf(quantizer, model, path) {
  const size = megabytes(statSync(path).size);
  let made = null;
  try {
    made = await quantizer.open(path);
    const { outputs } = await quantizer.compare(model, made, { runtime: ort });
    return `${size}, ${percent(outputs.error)}`;
  } catch (error) {
    return `${size}, ${error.code}: ${error.detail?.slice(0, 80) ?? error.message}`;
  } finally {
    await made?.close();
  }
}

async function rowOf(quantizer, path, folder) {
  const model = await quantizer.open(path);
  const cells = [basename(path), megabytes(model.bytes)];
  const unsaid = [];
  for (const preset of presets) {
    const target = join(folder, `${preset}.onnx`);
    try {
      const { totals, diagnostics } = await quantizer.quantizeModel(model, preset, { target, overwrite: true });
      const isSaid = diagnostics.some(({ code }) => code === 'output-larger');
      if (totals.bytesAfter > model.bytes && !isSaid) unsaid.push(`${basename(path)} as ${preset}`);
      cells.push(`${await cellOf(quantizer, model, target)}${isSaid ? ', larger' : ''}`);
    } catch (error) {
      cells.push(`– ${error.code}`);
    }
  }
  const own = [join(folder, 'dynamic.onnx'), join(folder, 'four_bits.onnx')];
  for (const target of own) rmSync(target, { force: true });
  const lines = execFileSync(python, [script, path, ...own], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const problems = Object.values(JSON.parse(lines.trim().split('\n').at(-1)));
  for (const [i, target] of own.entries())
    cells.push(problems[i] === null ? await cellOf(quantizer, model, target) : `– ${problems[i].slice(0, 60)}`);
  await model.close();
  return { cells, unsaid };
}

main(async () => {
  const folder = process.argv[2];
  if (!folder) throw new Error('name a folder of ONNX models');
  const names = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.onnx'));
  const scratch = mkdtempSync(join(tmpdir(), 'wasmquant-onnx-'));
  const quantizer = await createQuantizer();
  const unsaid = [];
  ort.env.logLevel = 'error';
  const head = ['model', 'MB', ...presets, 'ORT dynamic', 'ORT 4 bits'];
  process.stdout.write(`| ${head.join(' | ')} |\n|${' --- |'.repeat(head.length)}\n`);
  try {
    for (const name of names.sort()) {
      const row = await rowOf(quantizer, join(folder, name), scratch);
      unsaid.push(...row.unsaid);
      process.stdout.write(`| ${row.cells.join(' | ')} |\n`);
    }
  } finally {
    rmSync(scratch, { recursive: true });
    await quantizer[Symbol.asyncDispose]();
  }
  if (unsaid.length > 0) throw new Error(`larger without a word: ${unsaid.join(', ')}`);
});
