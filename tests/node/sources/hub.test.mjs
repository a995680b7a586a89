// Models of the Hugging Face Hub, on a hub of this test: ids, pages, companions, ranges, tokens, and answers that lie.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { cliJson } from '../cli/process.mjs';
import { quantizerFor, scratchFolder, tinyLlama } from '../scratch.mjs';

const commit = '0123456789abcdef0123456789abcdef01234567';
const later = 'fedcba9876543210fedcba9876543210fedcba98';

/** A hub with one model, whose files lie on another origin as on the real one. `behave` changes what is answered. */
async function startHub(t, behave = {}) {
  const requests = [];
  const files = new Map(
    readdirSync(tinyLlama)
      .filter((name) => /\.(json|safetensors)$/.test(name))
      .map((name) => [name, readFileSync(join(tinyLlama, name))]),
  );
  for (const name of readdirSync(join(tinyLlama, 'bf16')).filter((name) => /\.(json|safetensors)$/.test(name)))
    files.set(`bf16/${name}`, readFileSync(join(tinyLlama, 'bf16', name)));
  const listen = async (handler) => {
    const server = createServer(handler);
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    return `http://127.0.0.1:${server.address().port}`;
  };
  let answers = 0;
  const storage = await listen((request, response) => {
    requests.push({ at: 'storage', url: request.url, headers: request.headers });
    const name = decodeURIComponent(request.url.slice(1));
    const bytes = files.get(name);
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    const end = Math.min(Number(last) + 1, bytes.length);
    answers += 1;
    const size = bytes.length + (behave.wrongSize && name === 'model.safetensors' ? 1000 : 0);
    const etag = behave.changes && name === 'model.safetensors' && answers > 8 ? '"second"' : `"first-${name}"`;
    response.writeHead(206, {
      'Content-Range': `bytes ${first}-${end - 1}/${size}`,
      'Content-Length': end - Number(first),
      ETag: etag,
    });
    response.end(bytes.subarray(Number(first), end));
  });
  const endpoint = await listen((request, response) => {
    requests.push({ at: 'hub', url: request.url, headers: request.headers });
    const { pathname } = new URL(request.url, 'http://hub');
    const status = behave.status?.(request, pathname);
    if (status) return response.writeHead(status).end('{"error": "no"}');
    if (pathname.startsWith('/api/models/org/model/revision/')) {
      const revision = decodeURIComponent(pathname.split('/').at(-1));
      if (!['main', 'v1', 'refs/pr/1'].includes(revision)) return response.writeHead(404).end('{}');
      const siblings = [...files].map(([rfilename, { length }]) => ({ rfilename, size: length }));
      return response.end(JSON.stringify({ sha: revision === 'v1' ? later : commit, siblings }));
    }
    const match = /^\/org\/model\/resolve\/([0-9a-f]{40})\/(.+)$/.exec(pathname);
    if (!match || !files.has(decodeURIComponent(match[2]))) return response.writeHead(404).end('{}');
    response.writeHead(302, { Location: `${storage}/${match[2]}` }).end();
  });
  return { endpoint, requests, storage };
}

test('ids and pages of a repository, a revision, a folder and a file', async (t) => {
  const { endpoint, requests } = await startHub(t);
  const quantizer = await quantizerFor(t);
  for (const [source, shards, wanted] of [
    ['hf:org/model', 1, commit],
    ['org/model', 1, commit],
    [{ hub: 'org/model' }, 1, commit],
    [{ hub: 'org/model@v1/bf16' }, 3, later],
    [{ url: `${endpoint}/org/model` }, 1, commit],
    ['hf:org/model@v1', 1, later],
    ['hf:org/model@refs%2Fpr%2F1', 1, commit],
    ['hf:org/model/model.safetensors', 1, commit],
    ['hf:org/model/bf16', 3, commit],
    ['hf:org/model@v1/bf16/model.safetensors.index.json', 3, later],
    [`${endpoint}/org/model`, 1, commit],
    [`${endpoint}/org/model/tree/main`, 1, commit],
    [`${endpoint}/org/model/tree/v1/bf16`, 3, later],
    [`${endpoint}/org/model/blob/main/model.safetensors`, 1, commit],
    [new URL(`${endpoint}/org/model/resolve/v1/model.safetensors`), 1, later],
  ]) {
    requests.length = 0;
    const model = await quantizer.open(source, { hub: { endpoint } });
    assert.equal(model.files.length, shards, JSON.stringify(source));
    assert.equal(model.tensors.length, 39);
    const resolved = requests.filter(({ at, url }) => at === 'hub' && url.includes('/resolve/'));
    assert.ok(resolved.length > 0 && resolved.every(({ url }) => url.includes(wanted)), `${source}: at its commit`);
    if (shards === 1) assert.ok(await model.siblingFile('tokenizer.json'), String(source));
    await model.close();
  }
});

test('a run reads by ranges, writes the companions, and sends the token only to the hub', async (t) => {
  const { endpoint, requests } = await startHub(t, {
    status: ({ headers }) => (headers.authorization === 'Bearer hf_secret' ? null : 401),
  });
  const quantizer = await quantizerFor(t, { threads: 1 });
  const folder = scratchFolder(t);
  const model = await quantizer.open('hf:org/model', { hub: { endpoint, token: 'hf_secret' } });
  const report = await quantizer.quantizeModel(model, 'int8', { target: join(folder, 'hub') });
  await model.close();
  const local = await quantizer.open(tinyLlama);
  await quantizer.quantizeModel(local, 'int8', { target: join(folder, 'local') });
  await local.close();
  for (const name of ['model.safetensors', 'tokenizer.json', 'tokenizer_config.json', 'config.json']) {
    assert.ok(existsSync(join(folder, 'hub', name)), name);
    assert.deepEqual(readFileSync(join(folder, 'hub', name)), readFileSync(join(folder, 'local', name)), name);
  }
  assert.doesNotMatch(JSON.stringify(report), /hf_secret/);
  for (const name of readdirSync(join(folder, 'hub')))
    assert.ok(!readFileSync(join(folder, 'hub', name)).includes('hf_secret'), name);
  assert.ok(requests.filter(({ at }) => at === 'storage').every(({ headers }) => headers.authorization === undefined));
  assert.ok(requests.filter(({ at }) => at === 'storage').every(({ headers }) => /^bytes=/.test(headers.range)));
});

test('401, 403, 404 and 429 are explained, for the list and for a file', async (t) => {
  const quantizer = await quantizerFor(t);
  for (const [status, said, withToken] of [
    [401, /asks for a token \(401\).*private, gated, or does not exist/],
    [401, /refuses the token \(401\)/, true],
    [403, /accept the terms of the model on http.*\/org\/model/],
    [404, /no such model or revision \(404\)/],
    [429, /no more requests for now \(429\)/],
  ])
    for (const part of ['/api/', '/resolve/']) {
      const { endpoint } = await startHub(t, { status: (_, path) => (path.includes(part) ? status : null) });
      const hub = { endpoint, ...(withToken && { token: 'hf_secret' }) };
      await assert.rejects(quantizer.open('hf:org/model', { hub }), (error) => {
        assert.equal(error.code, 'source-invalid');
        assert.match(error.message, said);
        assert.doesNotMatch(error.message, /hf_secret/);
        return true;
      });
    }
  const { endpoint } = await startHub(t);
  await assert.rejects(quantizer.open('hf:org/model@v9', { hub: { endpoint } }), /404/);
  await assert.rejects(
    quantizer.open('hf:org/model/other.safetensors', { hub: { endpoint } }),
    /other\.safetensors: is not in the repository; it has model\.safetensors/,
  );
  // What looks like a file is one that is missing, not a model of the hub.
  await assert.rejects(
    quantizer.open('models/typo.safetensors', { hub: { endpoint } }),
    /there is no such file or folder/,
  );
  await assert.rejects(quantizer.open('hf:a/b/../c@', { hub: { endpoint } }), { code: 'source-invalid' });
});

test('a lying hub: wrong sizes, a file that changes, an answer that is not a list', async (t) => {
  const quantizer = await quantizerFor(t);
  const wrong = await startHub(t, { wrongSize: true });
  await assert.rejects(
    quantizer.open('hf:org/model', { hub: { endpoint: wrong.endpoint } }),
    /the hub lists \d+ bytes, and its server has \d+/,
  );
  const changing = await startHub(t, { changes: true });
  await assert.rejects(async () => {
    const model = await quantizer.open('hf:org/model', { hub: { endpoint: changing.endpoint } });
    await quantizer.quantizeModel(model, 'int8', { target: { write: async () => new WritableStream() } });
  }, /the file changed during the run \(ETag/);
  const silent = createServer((_, response) => response.end('{"sha": "main"}'));
  await new Promise((done) => silent.listen(0, '127.0.0.1', done));
  t.after(() => silent.close());
  const endpoint = `http://127.0.0.1:${silent.address().port}`;
  await assert.rejects(quantizer.open('hf:org/model', { hub: { endpoint } }), /no commit and list of files/);
});

test('the command line: HF_ENDPOINT and HF_TOKEN', async (t) => {
  const { endpoint } = await startHub(t, {
    status: ({ headers }) => (headers.authorization === 'Bearer hf_secret' ? null : 401),
  });
  const env = { HF_ENDPOINT: endpoint, HF_TOKEN: 'hf_secret' };
  const { code, document } = await cliJson(['inspect', 'org/model'], { env });
  assert.equal(code, 0, JSON.stringify(document.error));
  assert.equal(document.totals.tensors, 39);
  const out = join(scratchFolder(t), 'out');
  const written = await cliJson(['quantize', 'hf:org/model', '-o', out, '-p', 'int8'], { env });
  assert.equal(written.code, 0, JSON.stringify(written.document.error));
  assert.ok(existsSync(join(out, 'tokenizer.json')));
  assert.doesNotMatch(written.stdout, /hf_secret/);
  const refused = await cliJson(['inspect', 'hf:org/model'], { env: { HF_ENDPOINT: endpoint, HF_TOKEN: '' } });
  assert.match(refused.document.error.message, /asks for a token/);
});
