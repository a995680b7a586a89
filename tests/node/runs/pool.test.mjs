// The pool with workers made for the test: crashes are survived once, aborts end workers, idle ones let the process end.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { Pool } from '../../../dist/pool/pool.js';

/** A port whose jobs are answered by `answer(job)`, which may throw to crash the worker. */
function scriptedPort(answer, log) {
  let send;
  let die;
  let alive = true;
  return {
    listen(message, died) {
      [send, die] = [message, died];
    },
    post(message) {
      log.push(message.type);
      queueMicrotask(async () => {
        if (!alive) return;
        if (message.type === 'start') send({ type: 'ready' });
        if (message.type === 'release') send({ type: 'released', context: message.context });
        if (message.type !== 'job') return;
        try {
          const result = await answer(message.job);
          if (alive) send({ type: 'done', id: message.id, result });
        } catch (error) {
          if (alive) die(error.message);
        }
      });
    },
    async terminate() {
      alive = false;
      log.push('terminate');
    },
    hold(held) {
      log.push(held ? 'hold' : 'let go');
    },
  };
}

const never = new AbortController().signal;
const job = (label) => ({ label, bytes: 1, parts: [] });

test('a job whose worker dies is retried once on a fresh worker', async () => {
  const log = [];
  let attempts = 0;
  const answer = async () => {
    if (++attempts === 1) throw new Error('trap');
    return 'result';
  };
  const pool = new Pool(() => scriptedPort(answer, log), null, 1);
  const context = pool.context({ inputs: [], outputs: [], work: [] }, async () => new Uint8Array(0));
  assert.equal(await pool.run(context, job('a'), never), 'result');
  assert.deepEqual(
    log.filter((type) => type === 'start' || type === 'terminate' || type === 'context'),
    ['start', 'context', 'terminate', 'start', 'context'],
  );
  await pool.release(context);
  await pool.close(new Error('closed'));
});

test('a job that kills two workers is an error with its tensors and the reason', async () => {
  const answer = async ({ label }) => {
    if (label === 'bad.weight') throw new Error('out of memory');
    return label;
  };
  const pool = new Pool(() => scriptedPort(answer, []), null, 2);
  const context = pool.context({ inputs: [], outputs: [], work: [] }, async () => new Uint8Array(0));
  const running = [
    pool.run(context, job('good'), never),
    pool.run(context, job('bad.weight'), never),
    pool.run(context, job('other'), never),
  ];
  await assert.rejects(running[1], { code: 'worker-crashed', where: 'bad.weight', message: /out of memory/ });
  assert.deepEqual(await Promise.all([running[0], running[2]]), ['good', 'other']);
  await pool.close(new Error('closed'));
});

test('no more workers than allowed, and jobs wait their turn', async () => {
  let running = 0;
  let most = 0;
  const answer = async ({ label }) => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setTimeout(resolve, 5));
    running -= 1;
    return label;
  };
  const pool = new Pool(() => scriptedPort(answer, []), null, 3);
  const context = pool.context({ inputs: [], outputs: [], work: [] }, async () => new Uint8Array(0));
  const labels = Array.from({ length: 20 }, (_, number) => `job ${number}`);
  assert.deepEqual(await Promise.all(labels.map((label) => pool.run(context, job(label), never))), labels);
  assert.equal(most, 3);
  await pool.close(new Error('closed'));
});

test('abort ends the worker of a running job and drops a waiting one', async () => {
  const log = [];
  const pool = new Pool(() => scriptedPort(() => new Promise(() => {}), log), null, 1);
  const context = pool.context({ inputs: [], outputs: [], work: [] }, async () => new Uint8Array(0));
  const abort = new AbortController();
  const jobs = [pool.run(context, job('running'), abort.signal), pool.run(context, job('waiting'), abort.signal)];
  await new Promise((resolve) => setTimeout(resolve, 5));
  abort.abort('stop');
  for (const one of jobs) await assert.rejects(one, (reason) => reason === 'stop');
  assert.ok(log.includes('terminate'));
  assert.equal(log.filter((type) => type === 'job').length, 1);
  await pool.close(new Error('closed'));
});

test('idle workers are stopped after ten seconds, and started again for the next run', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const log = [];
  const pool = new Pool(() => scriptedPort(async ({ label }) => label, log), null, 2);
  const counts = () => ['start', 'terminate'].map((type) => log.filter((entry) => entry === type).length);
  const context = pool.context({ inputs: [], outputs: [], work: [] }, async () => new Uint8Array(0));
  await Promise.all(['a', 'b'].map((label) => pool.run(context, job(label), never)));
  await pool.release(context);
  t.mock.timers.tick(9_999);
  assert.deepEqual(counts(), [2, 0]);
  t.mock.timers.tick(1);
  assert.deepEqual(counts(), [2, 2]);
  const next = pool.context({ inputs: [], outputs: [], work: [] }, async () => new Uint8Array(0));
  assert.equal(await pool.run(next, job('c'), never), 'c');
  t.mock.timers.tick(60_000);
  assert.deepEqual(counts(), [3, 2], 'a run that is not released keeps its workers');
  await pool.release(next);
  await pool.close(new Error('closed'));
});

test('a process that forgets to dispose its quantizer still ends', () => {
  const script = `
    import { createQuantizer } from ${JSON.stringify(join(import.meta.dirname, '../../../dist/node.js'))};
    const quantizer = await createQuantizer({ threads: 2 });
    const model = await quantizer.open(${JSON.stringify(join(import.meta.dirname, '../../files/tiny-llama/model.safetensors'))});
    await quantizer.quantizeModel(model, 'int8', { target: new WritableStream() });
    console.log('done');`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  assert.equal(stdout, 'done\n', stderr);
  assert.equal(status, 0);
});

test('what stands in for workers does all work; once its time is over, it ends what it has begun, and workers do the rest', async (t) => {
  const alive = setInterval(() => {}, 1000);
  t.after(() => clearInterval(alive));
  const [here, there] = [[], []];
  let done;
  const others = new Promise((resolve) => {
    done = resolve;
  });
  const standIn = {
    start: () => scriptedPort(async ({ label }) => (label === 'long' ? others.then(() => 'own') : 'own'), here),
    milliseconds: 20,
  };
  const pool = new Pool(() => scriptedPort(async () => 'of a worker', there), null, 1, standIn);
  const context = pool.context({ inputs: [], outputs: [], work: [] }, async () => new Uint8Array(0));
  assert.equal(await pool.run(context, job('short'), never), 'own');
  assert.deepEqual([pool.hasStandIn, there], [true, []]);
  const long = pool.run(context, job('long'), never);
  assert.equal(await pool.run(context, job('next'), never), 'of a worker');
  assert.equal(pool.hasStandIn, false);
  assert.ok(!here.includes('terminate'), 'it has begun a job');
  done();
  assert.equal(await long, 'own');
  assert.ok(here.includes('terminate'));
  assert.equal(await pool.run(context, job('last'), never), 'of a worker');
  await pool.release(context);
  await pool.close(new Error('closed'));
});

test('a job for several workers does not wait for what stands in', async () => {
  const standIn = { start: () => assert.fail('it stands in'), milliseconds: 60_000 };
  const log = [];
  const pool = new Pool(() => scriptedPort(async () => 'together', log), null, 2, standIn);
  const context = pool.context({ inputs: [], outputs: [], work: [] }, async () => new Uint8Array(0));
  assert.equal(await pool.run(context, { ...job('a'), members: 2 }, never), 'together');
  await pool.release(context);
  await pool.close(new Error('closed'));
});
