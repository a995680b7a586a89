// npm run test:onnx-families [-- NAME...]: tiny checkpoints of model families (tests/families) become ONNX models, whose graph is built of
// config.json. In ONNX Runtime logits and hidden states are those of transformers in float32: of a text at once, token by token behind a cache,
// and of two texts of which one is padded in front. With int4 weights, in onnxruntime-web, they are those of the float graph with our dequantized
// weights. Differences are relative to the largest output. A line a model; exit code 1 for any difference.
//   --part 2/6|date/6: every sixth family   --keep: leave the files, say where
// Needs what tests/interop/peers.sh makes, and npm.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { inPart } from '../families/part.mjs';
import { ort, web } from '../interop/onnx/peers.mjs';
import { readTensors } from '../interop/safetensors_file.mjs';
import { buildAll } from '../setup/build.mjs';
import { main, root } from '../setup/command.mjs';
import { encoders, families, hasOneCache, refused } from './cases.mjs';
import { WrittenGraph } from './written_graph.mjs';

const peers = join(root, 'tests/interop/peers.sh');
const floatTolerance = 1e-5;
const codesTolerance = 1e-4;
const float = { global_quant_config: { weight: { dtype: 'int8' } }, exclude: ['*'] };

/** Tokens from 4 to 255, which every tiny vocabulary has and which are no padding. */
const tokensOf = (length, seed) =>
  Array.from({ length }, (_, i) => 4 + ((seed * 31 + i * i * 7 + i * 13 + (i >> 3)) % 251));
const [long, first, second] = [tokensOf(96, 1), tokensOf(68, 2), tokensOf(48, 3)];
const steps = 8;
const ones = (count) => Array(count).fill(1);

function python(script, input, ...args) {
  const options = { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28, input };
  return spawnSync(peers, ['run', 'python3', script, ...args], options);
}

/** The checkpoints of a family: one for each variant, with the same weights. */
function modelsOf(work, name) {
  const from = join(work, name);
  return families[name].map((changes, i) => ({
    folder: Object.keys(changes).length === 0 ? from : `${from}.${i}`,
    from,
    changes,
    isEncoder: name in encoders,
    label: [name, ...Object.keys(changes)].join(' '),
  }));
}

/** Writes what is expected of each next to its folder. Returns an object with an error where transformers refuses one. */
function expect(models) {
  const asked = JSON.stringify({ models, sequences: [long, first, second] });
  const { status, stdout, stderr } = python('tests/onnx_families/logits.py', asked);
  // Classes of transformers print to stdout, too.
  const lines = stdout.split('\n').filter((line) => line.startsWith('{'));
  if (status !== 0 || lines.length !== models.length) throw new Error(`logits.py: ${stderr.slice(-500)}`);
  return lines.map(JSON.parse);
}

const largest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

/** The largest difference to the last of the expected rows from `at` on, as many as were found. */
function difference(found, expected, columns, at) {
  const from = at * columns;
  if (from + found.length > expected.length) throw new Error(`${found.length} values are more than expected`);
  return found.reduce((most, value, i) => Math.max(most, Math.abs(value - expected[from + i])), 0);
}

/** Of a graph the largest difference of each kind of run, relative to the largest output. */
async function differencesOf(graph, isDecoder, expected, runsSteps) {
  const found = {};
  const scale = largest(expected[0]);
  const note = (kind, value) => {
    found[kind] = Math.max(found[kind] ?? 0, value / scale);
  };
  const whole = await graph.run([long], [ones(long.length)]);
  note('whole', difference(whole.rows[0], expected[0], whole.columns, 0));
  const cut = first.length - steps;
  const padding = first.length - second.length;
  // Encoders are padded behind.
  const rows = [first, isDecoder ? [...Array(padding).fill(0), ...second] : [...second, ...Array(padding).fill(0)]];
  const masks = rows.map((_, row) =>
    rows[row].map((_, i) => Number(row === 0 || (isDecoder ? i >= padding : i < second.length))),
  );
  const length = isDecoder ? cut : first.length;
  let {
    rows: outputs,
    columns,
    cache,
  } = await graph.run(
    rows.map((row) => row.slice(0, length)),
    masks.map((row) => row.slice(0, length)),
  );
  note('padded', difference(outputs[0], expected[1], columns, 0));
  const own = isDecoder ? outputs[1].subarray(padding * columns) : outputs[1].subarray(0, second.length * columns);
  note('padded', difference(own, expected[2], columns, 0));
  for (let at = length; at < first.length && runsSteps; ++at) {
    ({ rows: outputs, cache } = await graph.run(
      rows.map((row) => [row[at]]),
      masks.map((row) => row.slice(0, at + 1)),
      cache,
    ));
    for (const row of [0, 1])
      note('steps', difference(outputs[row], expected[row + 1], columns, row === 0 ? at : at - padding));
  }
  return found;
}

async function graphOf(runtime, quantizer, source, config, target) {
  const model = await quantizer.open(source);
  await quantizer.quantizeModel(model, config, { target, format: 'onnx', overwrite: true });
  await model.close();
  const [name] = readdirSync(join(target, 'onnx'));
  const path = join(target, 'onnx', name);
  return { path, graph: await WrittenGraph.load(runtime, new Uint8Array(readFileSync(path))) };
}

/** The largest difference of int4 in onnxruntime-web to our dequantized weights in the float graph. */
async function codesDifference(quantizer, folder, isDecoder) {
  const { path, graph: packed } = await graphOf(web, quantizer, folder, 'int4_wo_32', `${folder}.q4`);
  const { graph: decoded } = await graphOf(ort, quantizer, path, float, `${folder}.decoded`);
  const [found, expected] = await Promise.all(
    [packed, decoded].map((graph) => graph.run([first], [ones(first.length)])),
  );
  await Promise.all([packed.release(), decoded.release()]);
  if (isDecoder && Object.keys(found.cache).length === 0) throw new Error('the int4 graph has no cache');
  return difference(found.rows[0], expected.rows[0], found.columns, 0) / largest(expected.rows[0]);
}

async function problemsOf(quantizer, { folder, changes, isEncoder }, { error }) {
  if (error) throw new Error(`transformers: ${error}`);
  const tensors = readTensors(`${folder}.expected.safetensors`);
  const expected = [0, 1, 2].map((i) => tensors.get(String(i)).data);
  const isDecoder = !isEncoder;
  const { graph } = await graphOf(ort, quantizer, folder, float, `${folder}.float`);
  const found = await differencesOf(graph, isDecoder, expected, isDecoder && hasOneCache(changes));
  await graph.release();
  const codes = await codesDifference(quantizer, folder, isDecoder);
  const isRight = Object.values(found).every((value) => value < floatTolerance) && codes < codesTolerance;
  return {
    isRight,
    text: Object.entries({ ...found, int4: codes })
      .map(([name, value]) => `${name} ${value.toExponential(1)}`)
      .join('  '),
  };
}

async function check(quantizer, model, outcome) {
  let found;
  try {
    found = await problemsOf(quantizer, model, outcome);
  } catch (error) {
    found = { isRight: false, text: `${error.code ?? ''} ${error.message}`.slice(0, 400) };
  }
  process.stdout.write(`${model.label.padEnd(32)} ${found.isRight ? '=' : 'W'} ${found.text}\n`);
  return found.isRight;
}

/** Refused by its name, with what can be done with the model. */
async function checkRefused(quantizer, folder, name) {
  let said = '';
  try {
    await quantizer.plan(await quantizer.open(folder), 'int8', { format: 'onnx' });
  } catch (error) {
    said = error.message;
  }
  const isNamed =
    said.includes('no ONNX graph is built of models of type "') && said.includes('Export the model to ONNX elsewhere');
  process.stdout.write(`${name.padEnd(32)} ${isNamed ? 'refused' : `W ${said || 'is written'}`}\n`);
  return isNamed;
}

await main(async () => {
  const options = { part: { type: 'string' }, keep: { type: 'boolean' } };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const all = positionals.length > 0 ? positionals : inPart([...Object.keys(families), ...refused], values.part);
  const [names, others] = [all.filter((name) => name in families), all.filter((name) => refused.includes(name))];
  buildAll();
  const { createQuantizer } = await import('../../dist/node.js');
  const quantizer = await createQuantizer({ threads: 0 });
  const work = mkdtempSync(join(tmpdir(), 'onnx-families-'));
  let wrong = 0;
  try {
    const made = python('tests/families/make_families.py', '', work, ...names, ...others);
    if (made.status !== 0) throw new Error(`make_families.py: ${made.stdout.slice(-500)}${made.stderr.slice(-500)}`);
    const models = names.flatMap((name) => modelsOf(work, name));
    const outcomes = expect(models);
    for (const [i, model] of models.entries()) wrong += (await check(quantizer, model, outcomes[i])) ? 0 : 1;
    for (const name of others) wrong += (await checkRefused(quantizer, join(work, name), name)) ? 0 : 1;
    process.stdout.write(
      `${names.length} families, ${models.length} models, ${others.length} refused, ${wrong} wrong\n`,
    );
  } finally {
    await quantizer[Symbol.asyncDispose]();
    if (values.keep) process.stdout.write(`files: ${work}\n`);
    else rmSync(work, { recursive: true });
  }
  return wrong > 0 ? 1 : 0;
});
