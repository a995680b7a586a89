// What a person waits for at every command: whole processes of dist/cli.js compared with bare Node, in turns, as one JSON document.
//   start_bench.mjs [--runs N] [--node PATH]        another Node than this one
// Ratios are the medians of those of each turn, of wall and of processor time (milliseconds are medians, too). The first
// turn is not counted: it fills the page cache, and the compiled code that Node keeps.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../setup/command.mjs';
import { timed } from './file_peers.mjs';

const { values: options } = parseArgs({ options: { runs: { type: 'string' }, node: { type: 'string' } } });
const runs = Number(options.runs ?? 11);
const node = options.node ?? process.execPath;
const folder = mkdtempSync(join(tmpdir(), 'wasmquant-bench-'));
const output = join(folder, 'out');
const tinyLlama = join(root, 'tests/files/tiny-llama');
const commands = {
  '--help': [['--help']],
  '--version': [['--version']],
  'a wrong option': [['quantize', tinyLlama, '--wrnog'], 2],
  'config presets': [['config', 'presets']],
  inspect: [['inspect', tinyLlama]],
  'quantize, 10 MB to int8': [['quantize', tinyLlama, '--preset', 'int8', '-o', output]],
  'the same with two workers': [['quantize', tinyLlama, '--preset', 'int8', '-o', output, '--threads', '2']],
};
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

function turn() {
  const bare = timed(node, ['-e', '0']);
  return Object.values(commands).map(([args, status = 0]) => {
    const whole = timed(node, [join(root, 'dist/cli.js'), ...args], status);
    rmSync(output, { recursive: true, force: true });
    return { bare, whole };
  });
}

try {
  const turns = Array.from({ length: runs + 1 }, turn).slice(1);
  const of = (at, value) => median(turns.map((commandsOfTurn) => value(commandsOfTurn[at])));
  const rows = Object.keys(commands).map((command, at) => ({
    command,
    milliseconds: of(at, ({ whole }) => whole.milliseconds),
    cpuMilliseconds: of(at, ({ whole }) => whole.cpuMilliseconds),
    toNode: of(at, ({ whole, bare }) => whole.milliseconds / bare.milliseconds),
    cpuToNode: of(at, ({ whole, bare }) => whole.cpuMilliseconds / bare.cpuMilliseconds),
  }));
  const version = timed(node, ['--version']).output.trim();
  const bare = of(0, (pair) => pair.bare.milliseconds);
  process.stdout.write(`${JSON.stringify({ node: version, runs, bareMilliseconds: bare, rows }, null, 2)}\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
