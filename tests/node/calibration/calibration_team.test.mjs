// Calibration by several workers together: the bits are those of one; teams of the pool begin, share and end together.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { planMemory } from '../../../dist/engine/memory.js';
import { nodeHost } from '../../../dist/host/node_host.js';
import { planBlockTeam } from '../../../dist/plan/forward_plan.js';
import { Pool } from '../../../dist/pool/pool.js';
import { readTensors } from '../../interop/safetensors_file.mjs';
import { files, modelFor, quantizerFor, scratchFolder } from '../scratch.mjs';
import { firstBlocks } from '../tiny_llama.mjs';

const { data } = readTensors(join(files, 'tiny-llama-reference', 'calib_tokens.safetensors')).get('input_ids');

/** Rows of different lengths, five portions of the forward pass. */
const rows = [256, 200, 256, 31, 256, 256, 180, 256].map((length, row) => [
  ...data.subarray(256 * row, 256 * row + length),
]);

const weight = { dtype: 'int4', qscheme: 'per_group', group_size: 64, ch_axis: -1, symmetric: true };
const smooth = [{ name: 'smoothquant', alpha: 0.5 }];
const rotation = [
  { name: 'rotation', r2: true, scaling_layers: { first_layer: [], middle_layers: [], last_layer: [] } },
];
const configs = {
  gptq: { algo_config: [{ name: 'gptq' }] },
  'awq, gptq': { algo_config: [{ name: 'awq' }, { name: 'gptq' }] },
  'smoothquant, awq': { pre_quant_opt_config: smooth, algo_config: [{ name: 'awq' }] },
  'autosmoothquant, gptq at once': {
    pre_quant_opt_config: [{ name: 'autosmoothquant' }],
    algo_config: [{ name: 'gptq', true_sequential: false }],
  },
  'rotation, gptq': { pre_quant_opt_config: rotation, algo_config: [{ name: 'gptq' }] },
  'gptq or nearest': {
    algo_config: [
      { name: 'awq', on_worse: 'nearest' },
      { name: 'gptq', on_worse: 'nearest' },
    ],
  },
  'awq, gptq by groups': { algo_config: [{ name: 'awq' }, { name: 'gptq', act_group_aware: true }] },
  'awq, the best of gptq': { algo_config: [{ name: 'awq' }, { name: 'gptq', choose: 'best', on_worse: 'nearest' }] },
  'awq with duo scaling, gptq refined': {
    algo_config: [
      { name: 'awq', duo_scaling: true },
      { name: 'gptq', refine: 1 },
    ],
  },
  qronos: { algo_config: [{ name: 'qronos' }] },
};

test('one, two and three workers write the same files and report the same', { timeout: 600_000 }, async (t) => {
  const [source, folder] = [firstBlocks(t, 2, 128), scratchFolder(t)];
  const outcomes = new Map();
  for (const threads of [1, 2, 3]) {
    const quantizer = await quantizerFor(t, { threads });
    const model = await modelFor(t, quantizer, source);
    for (const [name, config] of Object.entries(configs)) {
      const target = join(folder, `${name} ${threads}`);
      const all = { global_quant_config: { weight }, exclude: ['lm_head'], ...config };
      const report = await quantizer.quantizeModel(model, all, { target, calibration: { tokens: { rows } } });
      const written = readdirSync(target).map((file) => [file, readFileSync(join(target, file), 'latin1')]);
      const outcome = { written, tensors: report.tensors };
      if (threads === 1) outcomes.set(name, outcome);
      else assert.deepEqual(outcome, outcomes.get(name), `${name}, ${threads} workers`);
    }
  }
});

test('the number of workers follows from the memory', () => {
  const mebibyte = 1024 * 1024;
  const plan = {
    ...{ tokenBytes: 1000, stateBytes: 4000, workingBytes: 2 * mebibyte, calibrationBytes: 20 * mebibyte },
    heldOutBytes: 30 * mebibyte,
    steps: [{ floatBytes: 10 * mebibyte }],
  };
  const team = (shareBytes, threads, needsReference = false, sequences = 16, holdsOut = false) => {
    const tokens = { ids: new Int32Array(sequences * 512), lengths: Array(sequences).fill(512) };
    return planBlockTeam({ shareBytes, threads, hostBytes: 0 }, { tokens, plan }, needsReference, holdsOut);
  };
  assert.deepEqual(team(1024 * mebibyte, 2), { members: 2, keepsStates: true });
  assert.deepEqual(team(1024 * mebibyte, 8), { members: 8, keepsStates: true });
  assert.deepEqual(team(1024 * mebibyte, 8, false, 3), { members: 3, keepsStates: true }, 'no more than sequences');
  assert.deepEqual(team(1024 * mebibyte, 8, true), { members: 1, keepsStates: true }, 'the float model runs, too');
  assert.deepEqual(team(1024 * mebibyte, 0), { members: 1, keepsStates: true });
  assert.deepEqual(team(220 * mebibyte, 8), { members: 2, keepsStates: true });
  assert.deepEqual(team(220 * mebibyte, 8, false, 16, true), { members: 1, keepsStates: true }, 'inputs are held out');
  assert.deepEqual(team(96 * mebibyte, 8), { members: 1, keepsStates: true });
  assert.deepEqual(team(70 * mebibyte, 8), { members: 1, keepsStates: false });
  assert.throws(() => team(50 * mebibyte, 8), { code: 'memory-budget' });
});

test('by default, two workers in Node calibrate a model of the size of SmolLM2-135M', () => {
  const plan = {
    ...{ tokenBytes: 2328, stateBytes: 8448, workingBytes: 13_762_560, calibrationBytes: 75_939_840, heldOutBytes: 0 },
    steps: [{ floatBytes: 14_160_384 }],
  };
  const tokens = { ids: new Int32Array(16 * 512), lengths: Array(16).fill(512) };
  const team = planBlockTeam(planMemory(nodeHost.budgetBytes, 2), { tokens, plan });
  assert.deepEqual(team, { members: 2, keepsStates: true });
});

/** A worker whose jobs are answered by `answer(job, member, share, receive)`; throwing crashes it. */
function scriptedPort(answer, ports) {
  let [send, die, alive] = [null, null, true];
  const [arrived, waiting] = [[], []];
  const port = {
    listen(message, died) {
      [send, die] = [message, died];
    },
    post(message, transfer) {
      const copy = structuredClone(message.type === 'shared' ? message : {}, { transfer });
      queueMicrotask(() => {
        if (!alive) return;
        if (message.type === 'start') setTimeout(() => alive && send({ type: 'ready' }), 5 * ports.indexOf(port));
        if (message.type === 'release') send({ type: 'released', context: message.context });
        if (message.type === 'shared') (waiting.shift() ?? ((shared) => arrived.push(shared)))(copy);
        if (message.type === 'job') void work(message);
      });
    },
    async terminate() {
      alive = false;
      ports.splice(ports.indexOf(port), 1);
    },
    hold() {},
  };
  const receive = () => (arrived.length > 0 ? arrived.shift() : new Promise((resolve) => waiting.push(resolve)));
  const work = async ({ id, job, member }) => {
    const share = (bytes) => send({ type: 'share', member, bytes });
    try {
      const result = await answer(job, member, share, receive);
      if (alive) send({ type: 'done', id, result });
    } catch (error) {
      if (alive) die(error.message);
    }
  };
  ports.push(port);
  return port;
}

const jobOf = (members) => ({ label: 'team', bytes: 1, parts: [], members });
const never = new AbortController().signal;
const poolOf = (answer, ports, size) => new Pool(() => scriptedPort(answer, ports), null, size);
const contextOf = (pool) => pool.context({ inputs: [], outputs: [], work: [] }, async () => new Uint8Array(0));

test('members of a team get what the others share, even if they start later', async () => {
  const answer = async ({ members }, member, share, receive) => {
    share([Uint8Array.of(member, 7)]);
    const found = [];
    for (let other = 1; other < members; ++other) found.push(await receive());
    return found.map((message) => [message.member, [...message.bytes[0]]]).sort();
  };
  const pool = poolOf(answer, [], 3);
  const context = contextOf(pool);
  assert.deepEqual(await pool.run(context, jobOf(3), never), [
    [1, [1, 7]],
    [2, [2, 7]],
  ]);
  await pool.release(context);
  await pool.close(new Error('closed'));
});

test('concurrent teams wait for each other', async () => {
  let running = 0;
  const answer = async ({ members }) => {
    assert.ok(++running <= 3);
    await new Promise((resolve) => setTimeout(resolve, 5));
    running -= 1;
    return members;
  };
  const pool = poolOf(answer, [], 3);
  const context = contextOf(pool);
  const runs = [2, 2, 3, 1].map((members) => pool.run(context, jobOf(members), never));
  assert.deepEqual(await Promise.all(runs), [2, 2, 3, 1]);
  await pool.close(new Error('closed'));
});

test('a member that dies ends its team, which restarts once; an abort ends all members', async () => {
  for (const deaths of [1, 2]) {
    let left = deaths;
    const ports = [];
    const pool = poolOf(
      async (_, member, __, receive) => {
        if (member === 1 && left > 0 && left--) throw new Error('out of memory');
        if (left > 0) await receive(); // for ever
        return 'done';
      },
      ports,
      2,
    );
    const run = pool.run(contextOf(pool), jobOf(2), never);
    if (deaths === 1) assert.equal(await run, 'done');
    else await assert.rejects(run, { code: 'worker-crashed' });
    assert.ok(ports.length <= 2);
    await pool.close(new Error('closed'));
    assert.equal(ports.length, 0);
  }
  const ports = [];
  const pool = poolOf((_, __, ___, receive) => receive(), ports, 2);
  const abort = new AbortController();
  const run = pool.run(contextOf(pool), jobOf(2), abort.signal);
  await new Promise((resolve) => setTimeout(resolve, 30));
  abort.abort('stop');
  await assert.rejects(run, (reason) => reason === 'stop');
  assert.equal(ports.length, 0);
  await pool.close(new Error('closed'));
});
