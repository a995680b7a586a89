// Our GGUF code against llama.cpp's tools: models of every family are converted, loaded and run; every recipe's choice
// of types equals llama-quantize's, tensor by tensor, over numbers of layers, heads and widths that its rules depend on;
// its files are read; split models load. A line per case; exit code 1 when something differs.
//   node tests/interop/gguf/gguf.mjs           tools from .peers (tests/interop/peers.sh), or the folder WASMQUANT_LLAMA_BIN
//   node tests/interop/gguf/gguf.mjs --record  writes tests/files/gguf_types.json, for the native tests: llama-quantize's types
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { main, root } from '../../setup/command.mjs';
import { completion, llama } from '../peers.mjs';
import { readModel } from '../safetensors_file.mjs';
import { familyNames, writeExperts, writeFalcon, writeImportance, writeLivelyModel, writeModel } from './file.mjs';

const ownTool = process.env.WASMQUANT_GGUF_TOOL ?? join(root, 'build/release/wasmquant_gguf_tool');
const tinyLlama = 'tests/files/tiny-llama';
const recipes = [
  ...[
    'q4_0',
    'q4_1',
    'q5_0',
    'q5_1',
    'q8_0',
    'q2_k',
    'q2_k_s',
    'q3_k_s',
    'q3_k_m',
    'q3_k_l',
    'q4_k_s',
    'q4_k_m',
    'q5_k_s',
  ],
  ...[
    'q5_k_m',
    'q6_k',
    'iq4_nl',
    'iq4_xs',
    ...'iq3_m iq3_s iq3_xs iq3_xxs iq2_m iq2_s iq2_xs iq2_xxs iq1_s iq1_m'.split(' '),
    'tq1_0',
    'tq2_0',
    'q1_0',
    'q2_0',
    'mxfp4_moe',
    'f16',
    'bf16',
    'f32',
  ],
];

let passed = 0;
let failed = 0;
function report(name, problem) {
  if (problem) ++failed;
  else ++passed;
  if (problem) process.stdout.write(`gguf ${name}: ${problem}\n`);
}

function own(...args) {
  const { status, stdout, stderr } = spawnSync(ownTool, args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 });
  if (status !== 0) throw new Error(`gguf_tool ${args.join(' ')}: ${stderr}`);
  return stdout.split('\n').filter((line) => line);
}

/** Map of tensor name to its type, shape and offset. */
function tensorsOf(path) {
  const rows = own('dump', path).filter((line) => line.startsWith('tensor '));
  return new Map(rows.map((line) => line.split(' ')).map(([, name, type, shape, at]) => [name, { type, shape, at }]));
}

function lastLines(output) {
  return output.trim().split('\n').slice(-3).join(' | ');
}

/** Whether it refuses a model because its type does not divide a row, and no other is meant for such rows. */
const hasNoFallback = (output) => /no tensor type fallback is defined/.test(output);

/** What llama-quantize would do: Map of tensor name to type; null when it refuses for want of a fallback. */
function typesOfDryRun(path, recipe, flags) {
  const { ok, output } = llama('llama-quantize', '--dry-run', ...flags, path, recipe.toUpperCase(), '1');
  if (!ok && hasNoFallback(output)) return null;
  const rows = output.matchAll(/^\[ *\d+\/ *\d+\] (\S+) .* type = +(\w+), size = .*?(?:\((\w+)\))?$/gm);
  return new Map([...rows].map(([, name, before, after]) => [name, after ?? before]));
}

/** What it did. */
function typesOfFile(path, recipe, work) {
  const out = join(work, 'quantized.gguf');
  const { ok, output } = llama('llama-quantize', path, out, recipe.toUpperCase(), '1');
  if (!ok && hasNoFallback(output)) return null;
  if (!ok) throw new Error(lastLines(output));
  const types = new Map([...tensorsOf(out)].map(([name, { type }]) => [name, type]));
  rmSync(out);
  return types;
}

/** Types by llama-quantize and by our rules; models it refuses are no case. */
function compareTypes(name, path, { pure = false, work = null } = {}) {
  for (const recipe of recipes) {
    if (work && /^(q2_k_s|iq3_xx?s|iq2.*|iq1.*)$/.test(recipe)) continue; // wants an importance matrix for more than a dry run
    const theirs = work ? typesOfFile(path, recipe, work) : typesOfDryRun(path, recipe, pure ? ['--pure'] : []);
    if (!theirs) continue;
    const different = own('types', path, recipe, ...(pure ? ['pure'] : []))
      .map((line) => line.split(' '))
      .map(([tensor, type]) => [tensor, type === '-' ? 'f32' : type, theirs.get(tensor)?.toLowerCase()])
      .filter(([, ours, their]) => ours !== their);
    const [first] = different;
    report(
      `types ${name} ${recipe}`,
      first && `${different.length} differ: ${first[0]} is ${first[1]}, not ${first[2]}`,
    );
  }
}

const recordFile = join(root, 'tests/files/gguf_types.json');

/** "a a b a" as "a*2 b a". */
function runLengths(words) {
  const runs = [];
  for (const word of words) {
    if (runs.at(-1)?.word === word) runs.at(-1).count++;
    else runs.push({ word, count: 1 });
  }
  return runs.map(({ word, count }) => (count > 1 ? `${word}*${count}` : word)).join(' ');
}

/** Of a model: its facts, its tensors ('#' for the layer), and for each recipe the types of each over the layers. */
function recordTypes(name, path) {
  const keys = new Map(
    own('dump', path)
      .filter((line) => line.startsWith('key '))
      .map((line) => line.split(' '))
      .map(([, key, , value]) => [key.replace(/^(llama|qwen2|falcon)\./, ''), value]),
  );
  const kinds = new Map();
  for (const [tensor, { shape }] of tensorsOf(path)) {
    const kind = tensor.replace(/^blk\.\d+\./, 'blk.#.');
    if (!kinds.has(kind)) kinds.set(kind, shape.split('x').map(Number));
  }
  const layers = Number(keys.get('block_count'));
  const types = {};
  for (const importance of [false, true]) {
    for (const recipe of recipes) {
      const file = join(path, '../importance.gguf');
      if (importance) writeImportance(file, 'blk.0.ffn_down.weight', kinds.get('blk.#.ffn_down.weight')?.at(-1) ?? 256);
      const theirs = typesOfDryRun(path, recipe, importance ? ['--imatrix', file] : []);
      if (!theirs) continue;
      const of = (tensor) => (theirs.get(tensor) ?? 'none').toLowerCase();
      const rows = [...kinds.keys()].map((kind) => [
        kind,
        kind.startsWith('blk')
          ? runLengths(Array.from({ length: layers }, (_, layer) => of(kind.replace('#', layer))))
          : of(kind),
      ]);
      types[importance ? `${recipe} importance` : recipe] = Object.fromEntries(rows);
    }
    // Where nothing changes, nothing is to be kept.
    for (const recipe of recipes)
      if (importance && JSON.stringify(types[recipe]) === JSON.stringify(types[`${recipe} importance`]))
        delete types[`${recipe} importance`];
  }
  const [heads, keyValueHeads] = [
    Number(keys.get('attention.head_count')),
    Number(keys.get('attention.head_count_kv')),
  ];
  const facts = { architecture: keys.get('general.architecture'), layers, heads, key_value_heads: keyValueHeads };
  const experts = Number(keys.get('expert_count') ?? 0);
  return { name, ...facts, experts, tensors: Object.fromEntries(kinds), types };
}

function record(work) {
  const records = [];
  const recorded = ['llama-4', 'llama-33', 'llama-80', 'qwen2-24'];
  for (const [family, measures] of models) {
    const name = `${family}-${measures.layers}`;
    if (!recorded.includes(name) || records.some((row) => row.name === name)) continue;
    writeModel(
      join(work, 'model'),
      family,
      name === 'llama-4' ? { ...measures, kvHeads: 2, feedForward: 576 } : measures,
    );
    own('convert', join(work, 'model'), join(work, 'converted.gguf'), 'f32');
    records.push(recordTypes(name, join(work, 'converted.gguf')));
  }
  writeExperts(join(work, 'experts.gguf'), { layers: 16, experts: 8 });
  records.push(recordTypes('experts-16', join(work, 'experts.gguf')));
  writeFalcon(join(work, 'falcon.gguf'), { layers: 32 });
  records.push(recordTypes('falcon-32', join(work, 'falcon.gguf')));
  writeFileSync(recordFile, `[\n${records.map((row) => JSON.stringify(row)).join(',\n')}\n]\n`);
  process.stdout.write(`wrote ${recordFile}\n`);
}

function runs(name, path) {
  const { ok, output } = llama('llama-bench', '-m', path, '-p', '8', '-n', '2', '-r', '1', '-t', '1');
  report(name, ok && /tg2/.test(output) ? '' : lastLines(output));
}

const base = { layers: 4, width: 256, heads: 8, kvHeads: 2, feedForward: 512, vocabulary: 288 };
/** Every family where it loads, and measures that the rules ask about. */
const models = [
  ...familyNames.map((family) => [family, { ...base, kvHeads: 8 }]),
  ['llama', { ...base, layers: 9, kvHeads: 4, tied: true }],
  ['llama', { ...base, layers: 16, heads: 16, kvHeads: 4, feedForward: 576 }],
  ['llama', { ...base, layers: 33, width: 192, heads: 6, kvHeads: 6, feedForward: 320 }],
  ['llama', { ...base, layers: 2, width: 48, heads: 3, kvHeads: 3, feedForward: 80 }],
  ['llama', { ...base, layers: 80, kvHeads: 4, feedForward: 256 }],
  ['llama', { ...base, layers: 80, kvHeads: 8, feedForward: 256, tied: true }],
  ['mistral', { ...base, layers: 32, kvHeads: 2, vocabulary: 512 }],
  ['qwen2', { ...base, layers: 24, kvHeads: 1, tied: true }],
  ['qwen2', { ...base, layers: 80, kvHeads: 4, feedForward: 256 }],
  ['qwen3', { ...base, layers: 17, kvHeads: 4, headWidth: 64 }],
  ['gemma', { ...base, layers: 18, kvHeads: 1 }],
  ['gemma2', { ...base, layers: 26, kvHeads: 4 }],
  ['gpt2', { ...base, layers: 12, width: 192, heads: 6 }],
  ['bert', { ...base, layers: 6, width: 384, heads: 6, feedForward: 1536 }],
];

main(() => {
  const work = mkdtempSync(join(tmpdir(), 'wasmquant-gguf-'));
  try {
    if (process.argv.includes('--record')) {
      record(work);
      return 0;
    }
    if (process.argv.includes('--texts')) {
      compareTexts(work);
      return failed;
    }
    const seen = new Set();
    for (const [family, measures] of models) {
      const name = `${family} ${Object.entries(measures)
        .map(([key, value]) => `${key}=${value}`)
        .join(' ')}`;
      const folder = join(work, 'model');
      const path = join(work, 'converted.gguf');
      writeModel(folder, family, measures);
      own('convert', folder, path, 'f32');
      if (!seen.has(family) && family !== 'bert') runs(`runs ${name}`, path);
      seen.add(family);
      compareTypes(name, path);
    }
    compareTypes('pure bert', join(work, 'converted.gguf'), { pure: true });

    for (const experts of [4, 8]) {
      const path = join(work, 'experts.gguf');
      writeExperts(path, { layers: 16, experts });
      compareTypes(`${experts} experts`, path);
    }
    writeFalcon(join(work, 'falcon.gguf'), { layers: 32 });
    compareTypes('falcon', join(work, 'falcon.gguf'));

    checkTinyLlama(work);
    compareTexts(work);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  process.stdout.write(`gguf: ${passed} passed, ${failed} failed\n`);
  return failed > 0 ? 1 : 0;
});

/** Families write the same text in transformers and, converted, in llama.cpp. */
function compareTexts(work) {
  const writing = familyNames.filter((family) => family !== 'bert');
  const folders = writing.map((family) => join(work, `lively-${family}`));
  const measures = { layers: 3, width: 128, heads: 4, kvHeads: 2, feedForward: 256 };
  for (const [i, family] of writing.entries()) writeLivelyModel(folders[i], family, measures);
  const [prompt, count, least] = ['What is this?', 24, 8];
  const exact = ['-ctk', 'f32', '-ctv', 'f32', '-fa', 'off'];
  const script = ['run', 'python3', join(root, 'tests/interop/greedy.py'), prompt, String(count), ...folders];
  const peers = spawnSync(join(root, 'tests/interop/peers.sh'), script, { cwd: root, encoding: 'utf8' });
  const lines = peers.stdout.trimEnd().split('\n');
  if (peers.status !== 0 || lines.length !== folders.length) {
    report('texts', `transformers: ${lastLines(peers.stderr)}`);
    return;
  }
  for (const [i, line] of lines.entries()) {
    const text = line.slice(line.indexOf(' ') + 1);
    const path = `${folders[i]}.gguf`;
    own('convert', folders[i], path, 'f32');
    const written = (stdout) => stdout.slice(stdout.indexOf(prompt) + prompt.length).trimEnd();
    const flags = ['-n', String(count), '--ignore-eos', '--no-escape', ...exact];
    const isLongEnough = (stdout) => stdout.includes(prompt) && written(stdout).length >= least;
    const { stdout, output } = completion(path, prompt, flags, isLongEnough);
    const theirs = written(stdout);
    const same = theirs.length >= least && text.startsWith(theirs);
    report(`text ${writing[i]}`, same ? '' : `${line} != ${theirs || lastLines(output)}`);
  }
}

/** Converted by us, by value and by use. */
function checkTinyLlama(work) {
  const path = join(work, 'tiny.gguf');
  for (const type of ['bf16', 'f16', 'f32']) {
    own('convert', tinyLlama, path, type);
    runs(`runs tiny-llama ${type}`, path);
  }
  const bytes = readFileSync(path);
  const ours = tensorsOf(path);
  const source = readModel(join(root, tinyLlama)).get('model.layers.1.self_attn.k_proj.weight');
  const at = Number(ours.get('blk.1.attn_k.weight').at);
  const [rows, columns] = source.shape;
  const half = rows / 2 / 2;
  let wrong = 0;
  for (let row = 0; row < rows; ++row) {
    const head = Math.floor(row / (2 * half));
    const inHead = row % (2 * half);
    const from = head * 2 * half + Math.floor(inHead / 2) + (inHead % 2) * half;
    for (let column = 0; column < columns; ++column)
      wrong += bytes.readFloatLE(at + 4 * (row * columns + column)) === source.data[from * columns + column] ? 0 : 1;
  }
  report('rows of heads interleave', wrong > 0 ? `${wrong} values differ` : '');

  compareTypes('tiny-llama', path, { work });
  compareTypes('pure tiny-llama', path, { pure: true });
  const isWhole = (text) => /In the beginning God [a-z]/.test(text);
  const { ok, stdout, output } = completion(path, 'In the beginning God', ['-n', '24'], isWhole);
  report('tiny-llama writes', ok && isWhole(stdout) ? '' : lastLines(output));

  own('split', path, join(work, 'parts'), String(2 << 20));
  const parts = readdirSync(work)
    .filter((name) => name.startsWith('parts-'))
    .sort();
  runs(`runs ${parts.length} parts`, join(work, parts[0]));
  const merged = join(work, 'merged.gguf');
  const merge = llama('llama-gguf-split', '--merge', join(work, parts[0]), merged);
  const after = merge.ok ? tensorsOf(merged) : new Map();
  const same = [...ours].every(
    ([name, { type, shape }]) => after.get(name)?.type === type && after.get(name).shape === shape,
  );
  report('parts are merged', merge.ok && same ? '' : lastLines(merge.output));
}
