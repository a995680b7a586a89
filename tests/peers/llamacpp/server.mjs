// llama.cpp as Debian packages it (tests/interop/peers.sh), asked by llama-server: logits of whole vocabularies, and tokens.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { needs, root } from '../../setup/command.mjs';

const peers = join(root, 'tests/interop/peers.sh');
const generated = 5;
const patienceMs = 60_000;

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return port;
}

/** A model that llama-server has loaded. Weights and the cache of keys and values are computed with as they are, without flash attention. */
export class Server {
  /** `more`: options. */
  static async start(file, ...more) {
    const port = await freePort();
    const exact = ['-ctk', 'f32', '-ctv', 'f32', '-fa', 'off', '-t', '1', '-c', '128', '-np', '1', '--no-warmup'];
    const place = ['--host', '127.0.0.1', '--port', String(port)];
    const child = spawn(peers, ['run', 'llama-server', '-m', file, ...exact, ...place, ...more], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true, // a process group, so that the server ends with the shell that mounts its root
    });
    const server = new Server(child, `http://127.0.0.1:${port}`);
    try {
      await server.#ready();
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  #said = '';

  constructor(child, url) {
    this.child = child;
    this.url = url;
    child.stderr.setEncoding('utf8').on('data', (text) => {
      this.#said = (this.#said + text).slice(-2000);
    });
  }

  async #ready() {
    for (const end = Date.now() + patienceMs; Date.now() < end; await wait(50)) {
      if (this.child.exitCode !== null)
        throw new Error(`llama-server does not load it: ${this.#said.trim().split('\n').slice(-6).join(' ')}`);
      const answer = await fetch(`${this.url}/health`).catch(() => null);
      if (answer?.ok) return;
    }
    throw new Error('llama-server is not ready after a minute');
  }

  /** The most probable next token, and the logits of all up to a constant: those of mean 0. */
  async next(tokens, vocabulary) {
    const body = { prompt: tokens, n_predict: 1, temperature: 0, n_probs: vocabulary, cache_prompt: false };
    const answer = await fetch(`${this.url}/completion`, { method: 'POST', body: JSON.stringify(body) });
    const { completion_probabilities: [position] = [], error } = await answer.json();
    if (!position) throw new Error(`llama-server: ${JSON.stringify(error)}`);
    const logits = new Float64Array(vocabulary).fill(Number.NaN);
    for (const { id, logprob } of position.top_logprobs) logits[id] = logprob;
    const mean = logits.reduce((sum, value) => sum + value, 0) / vocabulary;
    return { token: position.id, logits: logits.map((value) => value - mean) };
  }

  /** Of an encoder that was started with --embedding. */
  async embedding(tokens) {
    const answer = await fetch(`${this.url}/embedding`, { method: 'POST', body: JSON.stringify({ content: tokens }) });
    const [{ embedding: [vector] = [] } = {}] = await answer.json();
    if (!vector) throw new Error('llama-server gives no embedding');
    return vector;
  }

  async stop() {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = once(this.child, 'close');
    process.kill(-this.child.pid, 'SIGTERM');
    await ended;
  }
}

/** Logits of all positions of a prompt, one after the other, and five tokens after it. */
async function answersOf(file, { tokens, vocabulary }) {
  const server = await Server.start(file);
  try {
    const logits = [];
    for (let length = 1; length < tokens.length; ++length)
      logits.push((await server.next(tokens.slice(0, length), vocabulary)).logits);
    const written = [...tokens];
    while (written.length < tokens.length + generated) {
      const next = await server.next(written, vocabulary);
      if (written.length === tokens.length) logits.push(next.logits);
      written.push(next.token);
    }
    return { logits, tokens: written.slice(tokens.length) };
  } finally {
    await server.stop();
  }
}

const largest = (positions, of) =>
  Math.max(
    ...positions.map((values, i) => values.reduce((most, value, k) => Math.max(most, Math.abs(of(value, i, k))), 0)),
  );

/** Stands for a Python environment where `checkRuntime` asks one. */
export class LlamaCpp {
  constructor(name) {
    this.name = name;
    const { status } = spawnSync('bash', [peers, 'create'], { cwd: root, stdio: ['ignore', 2, 2] });
    if (status !== 0) throw needs('.peers/ with llama.cpp cannot be made here (see above)');
  }

  /** The package's version. */
  versionOf() {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query's own
    const { stdout } = spawnSync(peers, ['run', 'dpkg-query', '-W', '-f', '${Version}', 'llama.cpp-tools'], {
      cwd: root,
      encoding: 'utf8',
    });
    return stdout.trim();
  }

  /** Runs one of the tools: what it prints. Throws what it says when it fails. */
  tool(program, ...args) {
    const { status, stdout, stderr } = spawnSync(peers, ['run', program, ...args], {
      cwd: root,
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    });
    if (status !== 0) throw new Error(`${program}: ${`${stdout}${stderr}`.trim().slice(-400)}`);
    return stdout;
  }

  /** Outcomes of the cases of a file, as runtimes/loaded_cases.py prints them. */
  async *lines(_, file) {
    const references = new Map();
    for (const line of readFileSync(file, 'utf8').trim().split('\n')) {
      const entry = JSON.parse(line);
      try {
        const ours = await answersOf(entry.folder, entry);
        if (!references.has(entry.reference)) references.set(entry.reference, await answersOf(entry.reference, entry));
        const reference = references.get(entry.reference);
        const difference = largest(ours.logits, (value, i, k) => value - reference.logits[i][k]);
        const size = largest(reference.logits, (value) => value);
        yield { name: entry.name, difference, size, tokens: ours.tokens, referenceTokens: reference.tokens };
      } catch (error) {
        yield { name: entry.name, error: error.message };
      }
    }
  }
}
