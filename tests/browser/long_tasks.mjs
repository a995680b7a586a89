// How long the main thread of a page is busy at once.
import assert from 'node:assert/strict';

/**
 * Milliseconds of the longest task of the main thread while `steps` run: by the Long Tasks API, which knows those over 50 ms, and by the
 * processor time of the thread, which other programs on the machine do not lengthen.
 */
export async function longestTask(page, steps) {
  await page.evaluate(() => {
    window.longTasks = [];
    const observer = new PerformanceObserver((list) =>
      window.longTasks.push(...list.getEntries().map(({ duration }) => Math.round(duration))),
    );
    observer.observe({ type: 'longtask' });
    window.endTasks = () => observer.disconnect();
  });
  const browser = page.context().browser();
  await browser.startTracing(page, { categories: ['toplevel', '__metadata'] });
  await steps();
  await page.waitForTimeout(500); // what is done when the page is idle
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const mains = new Set(
    traceEvents
      .filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid} ${tid}`),
  );
  // Promises are settled behind a task, in a piece of its own: all that ran counts, not what is named a task.
  const own = traceEvents
    .filter(({ ph, pid, tid }) => ph === 'X' && mains.has(`${pid} ${tid}`))
    .map(({ tdur = 0 }) => tdur / 1000);
  const long = await page.evaluate(() => {
    window.endTasks();
    return window.longTasks;
  });
  assert.ok(own.length > 0, 'the trace has the tasks of the page');
  return { byClock: Math.max(0, ...long), byProcessor: Math.round(Math.max(...own)) };
}

/** Milliseconds that a task may take where `work` takes `usual`. */
const most = 100;
const usual = 20;

/** Runs in the page: what a page does, texts and objects made, sorted and written. */
function work() {
  const rows = Array.from({ length: 30_000 }, (_, i) => ({ name: `row ${(i * 7919) % 30_011}`, size: i }));
  rows.sort((left, right) => (left.name < right.name ? -1 : 1));
  return JSON.stringify(rows).length;
}

/** `found`: what `longestTask` gave on `page`, by step. On a slower machine, or a busy one, `work` and the page take longer alike. */
export async function assertShort(page, found) {
  const { byProcessor: reference } = await longestTask(page, () => page.evaluate(work));
  process.stdout.write(
    `# longest tasks, ms: ${JSON.stringify(found)}; the work that they are compared with: ${reference}\n`,
  );
  const limit = most * Math.max(1, reference / usual);
  for (const [step, { byClock, byProcessor }] of Object.entries(found))
    assert.ok(
      Math.min(byClock, byProcessor) <= limit,
      `${step}: ${byClock} ms by the clock, ${byProcessor} ms of work`,
    );
}
