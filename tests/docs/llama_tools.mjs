// Lines of guides that call llama.cpp's tools, run with Debian's (tests/interop/peers.sh). Ollama is no package of Debian or npm: what its
// lines need of this library is run instead, the Modelfile and the file that it names.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { completion } from '../interop/peers.mjs';
import { LlamaCpp, Server } from '../peers/llamacpp/server.mjs';

/** `-m FILE -p "TEXT"` of a line. */
function optionsOf(line) {
  const [, model] = /-m (\S+)/.exec(line) ?? [];
  if (!model) throw new Error(`${line} names no model with -m`);
  return { model, prompt: /-p "([^"]*)"/.exec(line)?.[1] ?? '' };
}

/** The file is loaded, and says a token after a prompt. */
async function serve(file) {
  const server = await Server.start(file);
  try {
    const answer = await fetch(`${server.url}/completion`, {
      method: 'POST',
      body: JSON.stringify({ prompt: 'In the beginning', n_predict: 4, temperature: 0 }),
    });
    const { content, error } = await answer.json();
    if (!content) throw new Error(`llama-server gives no text: ${JSON.stringify(error)}`);
    return content;
  } finally {
    await server.stop();
  }
}

/** Runs a line of a block; resolves to 1, or 0 for a line that calls none of the tools. */
export async function runLlamaTool(app, line) {
  const program = line.split(' ')[0];
  if (program !== 'llama-completion' && program !== 'llama-server') return 0;
  new LlamaCpp('llamacpp'); // makes .peers where it is missing
  const { model, prompt } = optionsOf(line);
  const file = join(app, model);
  if (program === 'llama-server') {
    process.stdout.write(`    llama-server: ${JSON.stringify(await serve(file))}\n`);
    return 1;
  }
  const { ok, stdout, output } = completion(file, prompt, ['-n', '32'], (text) => text.includes(prompt));
  if (!ok || !stdout.includes(prompt)) throw new Error(`${line} fails: ${output.slice(-2000)}`);
  process.stdout.write(`    llama-completion: ${JSON.stringify(stdout.trim().slice(0, 80))}\n`);
  return 1;
}

/** Runs the line that writes the Modelfile, and loads the file that its FROM names in llama.cpp. */
export async function serveModelfile(app, code) {
  const [first] = code.split('\n');
  const { status, stderr } = spawnSync('bash', ['-c', first], { cwd: app, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${first} fails: ${stderr}`);
  const [, named] = /^FROM (\S+)$/m.exec(readFileSync(join(app, 'Modelfile'), 'utf8')) ?? [];
  if (!named || !existsSync(join(app, named))) throw new Error('the Modelfile names no file of the folder with FROM');
  new LlamaCpp('llamacpp');
  process.stdout.write(`    Modelfile: ${JSON.stringify(await serve(join(app, named)))}\n`);
  return 1;
}
