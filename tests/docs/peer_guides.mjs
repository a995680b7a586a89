// The pages of web/docs/run with what they show: each page in a folder of its own, its lines that call wasmquant, its blocks of
// Python in the environment that test:peers makes for the runtime (.peers-python), its lines that call llama.cpp's tools with
// Debian's (.peers), in their order. Sizes of real models are compared with plans (sizes.mjs).
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PeerEnvironment } from '../peers/environments.mjs';
import { root } from '../setup/command.mjs';
import { fencesOf } from './fences.mjs';
import { runLlamaTool, serveModelfile } from './llama_tools.mjs';
import { copyOf, reader, runShell } from './reader.mjs';
import { wrongSizes } from './sizes.mjs';

const folder = 'web/docs/run';

/** vLLM's build for CPUs, as a script: engine and script in one process, a small cache. */
const variables = { VLLM_CPU_KVCACHE_SPACE: '1', VLLM_ENABLE_V1_MULTIPROCESSING: '0', VLLM_NO_USAGE_STATS: '1' };

function runPython(peer, code, cwd) {
  const environment = new PeerEnvironment(peer);
  writeFileSync(join(cwd, 'snippet.py'), `${code}\n`);
  const { python, env } = environment.interpreter();
  const { status, stdout, stderr, error } = spawnSync(python, ['snippet.py'], {
    cwd,
    env: { ...env, ...variables },
    encoding: 'utf8',
    timeout: 600_000,
  });
  if (error) throw error;
  if (status !== 0) throw new Error(`exit code ${status}\n${stdout.slice(-2000)}${stderr.slice(-4000)}`);
  return stdout.trim().split('\n').at(-1);
}

async function runPage(app, name) {
  const fences = fencesOf(readFileSync(join(root, folder, name), 'utf8'));
  let ran = 0;
  for (const { language, code, peer, tool, unrun, refused } of fences) {
    if (unrun || refused) continue;
    if (language === 'sh') ran += runShell(app, code);
    if (tool === 'llamacpp') for (const line of code.split('\n')) ran += await runLlamaTool(app, line);
    if (tool === 'modelfile') ran += await serveModelfile(app, code);
    if (!peer) continue;
    process.stdout.write(`    ${runPython(peer, code, app)}\n`);
    ran += 1;
  }
  return ran;
}

/** Runs every page that shows Python or llama.cpp's tools and whose name has `only`; resolves to the exit code. */
export async function runPeerGuides(packed, only) {
  let failed = 0;
  try {
    for (const page of await wrongSizes()) {
      failed += 1;
      process.stdout.write(`${page} FAILED  it has other sizes than plans: node tests/docs/sizes.mjs --write\n`);
    }
    const app = reader(packed);
    for (const name of readdirSync(join(root, folder)).sort()) {
      if (!name.includes(only) || !/<!-- (peer|tool): /.test(readFileSync(join(root, folder, name), 'utf8'))) continue;
      try {
        process.stdout.write(`${folder}/${name}\n`);
        process.stdout.write(`    ${await runPage(copyOf(app, packed), name)} ran\n`);
      } catch (error) {
        failed += 1;
        process.stdout.write(`${folder}/${name} FAILED  ${error.message}\n`);
      }
    }
  } finally {
    packed.remove();
  }
  return failed === 0 ? 0 : 1;
}
