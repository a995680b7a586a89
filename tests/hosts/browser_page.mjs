// A page in a browser that nothing drives: started headless with a profile of its own on the page's address, and ended when
// the page has posted its result.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serve } from '../setup/static_server.mjs';

const limitMs = 120_000;

const commandLines = {
  chromium: (profile, url) => [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    `--user-data-dir=${profile}`,
    url,
  ],
  firefox: (profile, url) => ['--headless', '--no-remote', '--profile', profile, url],
};

/**
 * What a page posts to the address in its query's `to`, parsed. `kind`: chromium or firefox. The page is index.html of
 * `folder`, or at `url`, another server's. Rejects when nothing comes in two minutes.
 */
export async function pageResult(kind, program, { folder, url }) {
  const profile = mkdtempSync(join(tmpdir(), 'wasmquant-profile-'));
  let settle;
  const result = new Promise((resolve, reject) => {
    settle = { resolve, reject };
  });
  const server = await serve(folder ?? profile, { receive: (text) => settle.resolve(text) });
  const browser = spawn(
    program,
    commandLines[kind](profile, `${url ?? server.url}?to=${encodeURIComponent(server.url)}`),
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true, // a group of processes, which end together
      env: { ...process.env, HOME: profile },
    },
  );
  let complaints = '';
  browser.stderr.setEncoding('utf8').on('data', (text) => {
    complaints = (complaints + text).slice(-2000);
  });
  const ended = new Promise((resolve) => {
    browser.on('exit', resolve);
    browser.on('error', resolve);
  });
  ended.then(() => settle.reject(new Error(`${program} ended before the page answered\n${complaints}`)));
  const late = new Error(`no answer from the page within ${limitMs / 1000} s\n`);
  const timer = setTimeout(() => settle.reject(late), limitMs);
  try {
    return JSON.parse(await result);
  } finally {
    clearTimeout(timer);
    try {
      process.kill(-browser.pid, 'SIGKILL');
    } catch {} // it ended by itself
    await ended;
    await server.close();
    rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}
