// The library alone in headless Chromium: an empty page under the policy that the README asks for, with dist/ and other
// folders on its server. Code of tests runs in it by `page.evaluate`, and finds `createQuantizer` on `window`.

import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../setup/command.mjs';
import { serve } from '../setup/static_server.mjs';
import { launchBrowser } from './browser.mjs';

const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'";
const page = `<!doctype html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">
<link rel="icon" href="data:,"><title>library</title><script type="module" src="library.js"></script>`;
const script = `import { createQuantizer } from './dist/index.js';
window.complaints = [];
document.addEventListener('securitypolicyviolation', (event) => window.complaints.push(event.violatedDirective));
window.createQuantizer = createQuantizer;`;

/** `folders`: more of them, by name. `requests` gets every address that the page and its workers asked for. */
export async function openLibrary(folders = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-library-'));
  writeFileSync(join(folder, 'index.html'), page);
  writeFileSync(join(folder, 'library.js'), script);
  for (const [name, path] of Object.entries({ dist: join(root, 'dist'), ...folders }))
    symlinkSync(path, join(folder, name));
  const server = await serve(folder);
  const browser = await launchBrowser();
  const context = await browser.newContext();
  const requests = [];
  context.on('request', (request) => requests.push(request.url()));
  const opened = await context.newPage();
  await opened.goto(server.url);
  await opened.waitForFunction(() => 'createQuantizer' in window);
  return {
    page: opened,
    context,
    server,
    requests,
    async close() {
      await browser.close();
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
