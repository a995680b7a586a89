// npm start: builds, quantizes the bundled sample model, prints the report, then serves the page.
//   --once     end after the report
//   --port N   first port to try, default 8080
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildAll } from './build.mjs';
import { main, needs, root, run } from './command.mjs';

function options(args) {
  try {
    const { values } = parseArgs({
      args,
      options: { once: { type: 'boolean' }, port: { type: 'string', default: '8080' } },
    });
    const port = Number(values.port);
    if (!Number.isInteger(port) || port < 0 || port > 65535)
      throw new Error(`--port ${values.port}: a number from 0 to 65535 is needed`);
    return { once: values.once ?? false, port };
  } catch (error) {
    throw Object.assign(needs(`${error.message}. Usage: npm start -- [--once] [--port N]`), { exitCode: 2 });
  }
}

main(async (args) => {
  const { once, port } = options(args);
  buildAll();

  const folder = mkdtempSync(join(tmpdir(), 'wasmquant-'));
  try {
    const command = [
      'dist/cli.js',
      'quantize',
      'tests/files/tiny-llama',
      '--preset',
      'int4_wo_128',
      '-o',
      join(folder, 'tiny-llama-int4'),
    ];
    process.stdout.write(`\n$ node ${command.join(' ')}\n`);
    run(process.execPath, command);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  if (once) return;

  const { preview } = await import('vite');
  const server = await preview({
    configFile: join(root, 'web/demo/vite.config.ts'),
    logLevel: 'error',
    preview: { host: '127.0.0.1', port },
  });
  process.stdout.write(`\nThe page is at ${server.resolvedUrls.local[0]} (Ctrl+C ends)\n`);
});
