// Vite's preview of a folder, for pages of tests, which may post what they found. Local only.
import { text } from 'node:stream/consumers';
import { preview } from 'vite';

/**
 * Serves `folder` on a free port of 127.0.0.1. `receive` gets the text of what pages post. Resolves to `{ url, close() }`.
 */
export async function serve(folder, { receive = null } = {}) {
  const posts = {
    name: 'posts',
    configurePreviewServer({ middlewares }) {
      middlewares.use(async (request, response, next) => {
        if (!receive || request.method !== 'POST') return next();
        receive(await text(request));
        response.writeHead(204).end();
      });
    },
  };
  const hadMode = 'NODE_ENV' in process.env;
  const server = await preview({
    configFile: false,
    root: folder,
    appType: 'mpa', // a file that is missing is 404, not index.html
    logLevel: 'error',
    build: { outDir: '.' },
    preview: { host: '127.0.0.1', port: 0 },
    plugins: [posts],
  });
  if (!hadMode) delete process.env.NODE_ENV; // Vite says "production" there: npm would install less
  return { url: server.resolvedUrls.local[0], close: () => server.close() };
}
