// Faults and load in one page of headless Chromium: models in a row with the heap back at its mark, many at once, aborted
// runs, workers that die, memory that runs out, a network that goes away and comes back, a tab that is frozen.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openLibrary } from '../browser/library_page.mjs';
import { root } from '../setup/command.mjs';
import { writeShards } from './model.mjs';
import { outOfMemory, withLittleMemory } from './small_memory.mjs';

const atOnce = 50;
/** What may come and go between two looks at the heap, in bytes. */
const slack = 4 * 2 ** 20;

/** In the page: `window.run(options)` quantizes the model, and answers with digests of its files or the error. */
async function prepare(names) {
  const blobs = await Promise.all(names.map(async (name) => (await fetch(`model/${name}`)).blob()));
  const files = blobs.map((blob, at) => new File([blob], names[at]));
  window.quantizers = {};
  window.quantizer = (key, options) => {
    window.quantizers[key] ??= window.createQuantizer(options);
    return window.quantizers[key];
  };
  window.run = async ({ key = 'two', options = { threads: 2 }, source = null, signal, onProgress } = {}) => {
    const parts = [];
    const target = {
      write: async () => new WritableStream({ write: (part) => void parts.push(part.slice()) }),
    };
    try {
      const quantizer = await window.quantizer(key, options);
      const opened = await quantizer.open(source ?? files);
      try {
        await quantizer.quantizeModel(opened, 'int4_wo_128', { target, signal, onProgress });
      } finally {
        await opened.close();
      }
      const digest = await crypto.subtle.digest('SHA-256', await new Blob(parts).arrayBuffer());
      return { digest: [...new Uint8Array(digest)].join() };
    } catch (error) {
      return { code: error.code ?? String(error), message: error.message };
    }
  };
  return window.run();
}

async function heapBytes(session) {
  for (let round = 0; round < 3; ++round) {
    await session.send('HeapProfiler.collectGarbage');
    await sleep(50);
  }
  return (await session.send('Runtime.getHeapUsage')).usedSize;
}

export async function chromium(folder, count, fault) {
  const model = writeShards(join(folder, 'model'), 2);
  const names = ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'];
  const library = await openLibrary({ model });
  const { page, context } = library;
  try {
    const session = await context.newCDPSession(page);
    const { digest, message } = await page.evaluate(prepare, names);
    fault(digest !== undefined, `the undisturbed run: ${message}`);
    const same = (what, found) => fault(found.digest === digest, `${what}: ${found.message ?? 'other bytes'}`);
    const runs = (times) =>
      page.evaluate(async (rounds) => {
        const found = new Set();
        for (let at = 0; at < rounds; ++at) found.add(JSON.stringify(await window.run()));
        const { liveObjects } = await window.quantizer('two');
        return { found: [...found].map((text) => JSON.parse(text)), liveObjects };
      }, times);

    await runs(10);
    const before = await heapBytes(session);
    const { found, liveObjects } = await runs(count);
    const change = (await heapBytes(session)) - before;
    for (const each of found) same(`one of ${count} in a row`, each);
    fault(change < slack, `${count} runs left ${change} bytes of the heap`);
    fault(liveObjects === 0, `${liveObjects} objects of the module stayed alive`);

    const many = await page.evaluate((all) => Promise.all(Array.from({ length: all }, () => window.run())), atOnce);
    for (const each of many) same(`one of ${atOnce} at once`, each);

    for (let step = 1; step <= 6; ++step) {
      const aborted = await page.evaluate((limit) => {
        const controller = new AbortController();
        let calls = 0;
        const onProgress = () => ++calls === limit && controller.abort(new Error('changed my mind'));
        return window.run({ signal: controller.signal, onProgress });
      }, step);
      fault(
        aborted.message === 'changed my mind' || aborted.digest === digest,
        `aborted at call ${step}: ${aborted.message}`,
      );
      same('after an abort', await page.evaluate(() => window.run()));
    }

    // Scripts of workers that throw once, and whenever they get a job.
    for (const [deaths, code] of [
      [1, undefined],
      [1000, 'worker-crashed'],
    ]) {
      const dying = await page.evaluate((times) => {
        const { Worker: Real } = window;
        let left = times;
        window.Worker = class extends Real {
          postMessage(sent, transfer) {
            if (sent.type === 'job' && left-- > 0)
              queueMicrotask(() => this.onerror?.({ message: 'ended by the test' }));
            else super.postMessage(sent, transfer);
          }
        };
        const done = window.run({ key: `dying ${times}` });
        return done.finally(() => {
          window.Worker = Real;
        });
      }, deaths);
      if (code === undefined) same('a worker died once', dying);
      else fault(dying.code === code, `workers die always: ${dying.code} ${dying.message}`);
    }

    const bytes = readFileSync(join(root, 'dist/wasmquant.wasm'));
    let refused = 0;
    for (const pages of [12, 20, 24, 100]) {
      const little = Buffer.from(withLittleMemory(bytes, pages)).toString('base64');
      const outcome = await page.evaluate(
        async ([key, text]) => {
          const wasmModule = await WebAssembly.compile(Uint8Array.from(atob(text), (char) => char.charCodeAt(0)));
          return window.run({ key, options: { threads: 2, wasmModule } });
        },
        [`${pages} pages`, little],
      );
      refused += outcome.code === 'worker-crashed' ? 1 : 0;
      fault(outOfMemory.includes(outcome.code) || outcome.digest === digest, `${pages} pages: ${outcome.message}`);
    }
    fault(refused > 0, 'no memory was too small');

    // With an address, what stands beside the file goes over, too.
    const fetched = () =>
      page.evaluate((file) => window.run({ source: new URL(`model/${file}`, location.href) }), names[0]);
    const undisturbed = await fetched();
    fault(undisturbed.digest !== undefined, `the undisturbed run by address: ${undisturbed.message}`);
    for (const offlineMs of [200, 1500]) {
      const running = fetched();
      await sleep(20);
      await context.setOffline(true);
      await sleep(offlineMs);
      await context.setOffline(false);
      const outcome = await running;
      const isTold = outcome.code === 'source-invalid'; // gone before the file was opened
      const isSame = outcome.digest !== undefined && outcome.digest === undisturbed.digest;
      fault(isTold || isSame, `offline for ${offlineMs} ms: ${outcome.code ?? 'other bytes'} ${outcome.message ?? ''}`);
    }

    // Headless Chromium hides no tab; it freezes one, as browsers do with those in the background.
    for (const frozenMs of [300, 1500]) {
      const running = page.evaluate(() => window.run());
      await sleep(20);
      await session.send('Page.setWebLifecycleState', { state: 'frozen' });
      await sleep(frozenMs);
      await session.send('Page.setWebLifecycleState', { state: 'active' });
      same(`a tab that was frozen for ${frozenMs} ms`, await running);
    }
    const complaints = await page.evaluate(() => window.complaints);
    fault(complaints.length === 0, `the policy was violated: ${complaints}`);
    const strange = library.requests.filter((url) => !url.startsWith(library.server.url) && !/^(blob|data):/.test(url));
    fault(strange.length === 0, `requests to ${strange}`);
    const kib = (change / 1024).toFixed(0);
    return `${count} models in a row (heap ${kib} KiB after), ${atOnce} at once, 6 aborts, dying workers, little memory ${refused} times, offline twice, frozen twice`;
  } finally {
    await library.close();
  }
}
