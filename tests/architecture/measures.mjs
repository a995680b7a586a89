// What the house is measured by: how far one fact spreads, how large things are. Each measure has a gate and an aim. A gate that holds
// is enforced from then on; one that does not is printed as open. `node tests/architecture/check.mjs` prints the table.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/command.mjs';
import { filesBelow } from '../setup/source_files.mjs';
import { blocksOf, withoutComments } from './cpp_blocks.mjs';

const read = (file) => readFileSync(join(root, file), 'utf8');
const linesIn = (files) => files.reduce((sum, file) => sum + read(file).split('\n').length - 1, 0);
const budget = JSON.parse(read('tests/architecture/budget.json'));

/** Outside tools, and the words that name them. The room of each is src/tools/NAME. */
const tools = {
  quark: /quark/i,
  compressed_tensors: /compressed.?tensors/i,
  brevitas: /brevitas/i,
  aihwkit: /aihwkit/i,
  mlx: /mlx/i,
  modelopt: /model_?opt/i,
  bitsandbytes: /bitsandbytes|bnb/i,
};

/** Runtimes, and the words that name them in texts and data; calls of what their room offers do not count. */
const runtimes = {
  transformers: /(?<!sentence-)transformers(?!\.js|::)/,
  vLLM: /\bv[lL]{2}[mM]\b(?!::)/,
  'llama.cpp': /llama\.cpp|llama-(?!int4|3|4|bpe|v3)/,
  'ONNX Runtime': /ONNX Runtime|(?<!wasmquant\/)onnxruntime/,
};

/** Families whose names in a file make that file a table of families, if three or more of them stand in it. */
const families = ['llama', 'mistral', 'qwen2', 'qwen3', 'gemma', 'gemma2', 'gemma3', 'gpt2', 'bert', 'mixtral'];
const most = (list) => list.reduce((a, b) => (b.value > a.value ? b : a), { value: 0, name: '' });

function cppMeasures() {
  const files = filesBelow('src', /\.(cpp|h|def)$/);
  const text = new Map(files.map((file) => [file, withoutComments(read(file))]));
  const code = [...files, ...filesBelow('bindings', /\.(cpp|h)$/)].filter((file) => !file.endsWith('.def'));
  const blocks = code.flatMap((file) =>
    blocksOf(read(file)).map((block) => ({ ...block, file, value: block.last - block.first + 1 })),
  );
  const functions = blocks.filter(({ kind }) => kind === 'function');
  const classes = blocks.filter(({ kind }) => kind === 'class');
  const named = Object.entries(tools).map(([tool, words]) => {
    const isRoom = (file) => file.startsWith(`src/tools/${tool}/`) || file.startsWith('src/runtimes/');
    const outside = files.filter((file) => !isRoom(file) && words.test(text.get(file)));
    return {
      name: `files outside its room that name ${tool}`,
      found: outside,
      gate: tool === 'quark' ? 12 : 5,
      aim: 3,
    };
  });
  const tables = files.filter(
    (file) =>
      !/^src\/(families|runtimes\/transformers|gguf_conversion\/tokenizer)\//.test(file) && // kinds of tokenizers have names of families
      families.filter((family) => new RegExp(`["|]${family}["|]`).test(text.get(file))).length > 2,
  );
  const place = ({ file, first, name, value }) => `${file}:${first} ${name} ${value}`;
  const over = (list, lines) => list.filter(({ value }) => value > lines).map(place);
  const largest = most(classes.map(({ members, name }) => ({ value: members, name })));
  return [
    ...named,
    { name: 'tables of families outside src/families', found: tables, gate: 0 },
    {
      name: 'family.is("…") outside src/families',
      found: files.filter((file) => !file.startsWith('src/families/') && /\bis\("\w+"\)/.test(text.get(file))),
      gate: 0,
    },
    ...parses([...text.keys(), ...filesBelow('bindings', /\.cpp$/)]),
    { name: 'functions over 60 lines', found: over(functions, 60), gate: 0 },
    { name: 'functions over 40 lines', found: over(functions, 40), aim: 10 },
    { name: 'classes over 150 lines', found: over(classes, 150), gate: 3, aim: 0 },
    { name: `most data members of a class (${largest.name})`, value: largest.value, aim: 10 },
    { name: 'lines of src', value: linesIn(files), gate: budget.src_lines, aim: 43600 },
  ];
}

/** How far what is known of a runtime spreads, and what CheckpointFormat asks beyond bytes. */
function runtimeMeasures() {
  const product = ['src', 'bindings', 'web/lib', 'web/cli', 'web/demo', 'web/present'].flatMap((folder) =>
    filesBelow(folder, /\.(cpp|h|def|tsx?)$/),
  );
  const outside = product.filter((file) => !/^(src|web\/present)\/runtimes\/|\/generated\//.test(file));
  const named = Object.entries(runtimes).map(([name, words]) => ({
    name: `files outside src/runtimes that name ${name}`,
    found: outside.filter((file) => words.test(withoutComments(read(file)).replace(/^#include .*/gm, ''))),
    gate: budget.files_that_name_a_runtime[name],
    aim: 6,
  }));
  const questions = read('src/checkpoint/checkpoint_format.h').match(/^\s+virtual/gm).length;
  return [...named, { name: 'virtual functions of CheckpointFormat', value: questions, gate: 8 }];
}

/** Files of the pipeline and of handles that parse a config's text; who else needs the config gets it parsed. */
function parses(files) {
  const of = (pattern) =>
    files.filter(
      (file) => /^(src\/pipeline|bindings\/handles)\//.test(file) && pattern.test(withoutComments(read(file))),
    );
  return [
    // ModelIndex keeps it for the plans, passes and comparisons of a thread; workers get what was read of it, packed.
    { name: 'files of a run that parse config.json', found: of(/json::kPython/), gate: 1 },
    // GivenConfig keeps it for the plans of a thread; Calibration reads the text that came with a worker's job, once.
    { name: 'files of a run that parse a quantization config', found: of(/\bparse_(text|for_format)\(/), gate: 1 },
  ];
}

function bindingMeasures() {
  const files = filesBelow('bindings', /\.(cpp|h)$/);
  const text = files.map(read).join('\n');
  const handles = [...text.matchAll(/class_<\w+>\("(\w+)"\)/g)].map(([, name]) => name);
  const tests = filesBelow('tests/native/bindings', /\.cpp$/)
    .map(read)
    .join('\n');
  return [
    {
      name: 'handles of the border without a native test',
      found: handles.filter((handle) => !tests.includes(`Bound${handle}`)),
      gate: 0,
    },
    {
      name: 'bound functions and methods',
      value: [...text.matchAll(/(?:\.|\bemscripten::|^\s*)function\("/gm)].length,
      aim: 40,
    },
    { name: 'lines of bindings', value: linesIn(files), gate: budget.bindings_lines },
  ];
}

/** Lists of the core that TypeScript repeats by hand: a file that names the table's rows and is not made by the build. */
function mirrors() {
  const byHand = {
    'web/lib/quantizer.ts': /'brevitas', 'aihwkit'/,
    'web/lib/api/parsed_config_types.ts': /'brevitas' \| 'aihwkit'/,
    'web/lib/api/config_types.ts': /dialect\?: 'aihwkit'/,
    'web/lib/api/errors.ts': /'config-invalid',/,
    'web/lib/api/formats.ts': /'compressed-tensors',/,
  };
  return Object.entries(byHand)
    .filter(([file, rows]) => existsSync(join(root, file)) && rows.test(read(file)))
    .map(([file]) => file);
}

function treeMeasures() {
  const counts = new Map();
  for (const top of ['src', 'bindings', 'web', 'tests'])
    for (const entry of readdirSync(join(root, top), { withFileTypes: true, recursive: true })) {
      const folder = entry.parentPath ?? entry.path;
      const isSource = /\.(cpp|h|def|tsx?|mjs|py)$/.test(entry.name) && !/node_modules|\.peers|generated/.test(folder);
      if (entry.isFile() && isSource) counts.set(folder, (counts.get(folder) ?? 0) + 1);
    }
  const long = [...counts]
    .filter(([, count]) => count > 25)
    .map(([folder, count]) => `${folder.slice(root.length + 1)} ${count}`);
  return [
    { name: 'folders over 25 files, tests too', found: long, gate: 0 },
    { name: 'tables of the core mirrored in TypeScript by hand', found: mirrors(), gate: 0 },
    {
      name: 'lines of tests/setup',
      value: linesIn(filesBelow('tests/setup', /\.(mjs|sh|env)$/)),
      gate: budget.tests_setup_lines,
      aim: 600,
    },
  ];
}

/** {name, value, gate, aim, found}: `found` are the places that make the value. */
export function measure() {
  return [...cppMeasures(), ...runtimeMeasures(), ...bindingMeasures(), ...treeMeasures()].map((row) => ({
    ...row,
    value: row.value ?? row.found.length,
  }));
}

/** Gates that hold today: a change that breaks one is refused. The others are printed as open. */
export const enforced = new Set(JSON.parse(read('tests/architecture/budget.json')).enforced ?? []);

/** The table; `all` adds the places. */
export function table(rows, all = false) {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const cell = (value) => String(value ?? '').padStart(6);
  const state = ({ value, gate, aim }) => {
    if (gate === undefined) return value <= aim ? 'aim reached' : 'aim';
    return value <= gate ? 'holds' : 'OPEN';
  };
  const lines = [`${'measure'.padEnd(width)} ${cell('now')} ${cell('gate')} ${cell('aim')}`];
  for (const row of rows) {
    lines.push(`${row.name.padEnd(width)} ${cell(row.value)} ${cell(row.gate)} ${cell(row.aim)}  ${state(row)}`);
    if (all) for (const place of row.found ?? []) lines.push(`    ${place}`);
  }
  return `${lines.join('\n')}\n`;
}
