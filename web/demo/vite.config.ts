// Builds the page into dist/demo. `wasmquant` is the built package (dist/index.js), so the page is bundled exactly as
// a user's page: worker and WebAssembly file are found through new URL(..., import.meta.url).
import { createHash } from 'node:crypto';
import { createReadStream, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { defineConfig, type Plugin } from 'vite';

interface Package {
  homepage?: string;
  repository?: { url: string };
}

/** Links of the header, as far as package.json has them. */
function linksOf({ homepage, repository }: Package): { title: string; address: string }[] {
  const source = repository?.url.replace(/^git\+/, '').replace(/\.git$/, '');
  return [
    ...(homepage ? [{ title: 'Guides', address: homepage }] : []),
    ...(source ? [{ title: 'Source', address: source }] : []),
  ];
}

const root = import.meta.dirname;
const repository = resolve(root, '../..');
const sampleFolder = join(repository, 'tests/files/tiny-llama');
const sampleFiles = ['model.safetensors', 'config.json', 'tokenizer.json', 'tokenizer_config.json'];
const tokenFolder = join(repository, 'tests/files/tiny-llama-reference');
/** Texts of the sample, and the token files they are in. */
const sampleTexts = { 'calibrate.txt': 'calib_tokens.safetensors', 'measure.txt': 'validation_tokens.safetensors' };

/** The sample's tokens are bytes, those from 256 on are special and begin a window: a token file (I32) is a text, of which each window is a
 * line without the parts of words at its ends. */
function textOf(file: string): string {
  const bytes = readFileSync(join(tokenFolder, file));
  const start = 8 + Number(bytes.readBigUInt64LE(0));
  const ids = Array.from({ length: (bytes.length - start) / 4 }, (_, i) => bytes.readInt32LE(start + 4 * i));
  const windows = String.fromCharCode(...ids.map((id) => (id < 256 ? id : 0))).split('\0');
  const wholeWords = (text: string) => text.replace(/^[^A-Z\s]\S*\s/, '').replace(/\s\S*[^\s.:;,]$/, '');
  return windows.map((text) => wholeWords(text).trim()).join('\n');
}

// 'wasm-unsafe-eval' permits compiling WebAssembly and nothing else; blob: is for the download links of finished files.
const contentSecurityPolicy = [
  "default-src 'self'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "img-src 'self' data:",
  // URLs that people paste; the page itself requests only its own files.
  "connect-src 'self' https:",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

/** Adds the policy to the built page only: the development server injects styles that it would block. */
function contentSecurity(): Plugin {
  return {
    name: 'content-security-policy',
    apply: 'build',
    transformIndexHtml: () => [
      {
        tag: 'meta',
        attrs: { 'http-equiv': 'Content-Security-Policy', content: contentSecurityPolicy },
        injectTo: 'head-prepend',
      },
    ],
  };
}

/** Serves the sample model as sample/<file>; the page fetches it only on request. */
function sampleModel(): Plugin {
  return {
    name: 'sample-model',
    generateBundle() {
      for (const name of sampleFiles) {
        this.emitFile({ type: 'asset', fileName: `sample/${name}`, source: readFileSync(join(sampleFolder, name)) });
      }
      for (const [name, tokens] of Object.entries(sampleTexts)) {
        this.emitFile({ type: 'asset', fileName: `sample/${name}`, source: textOf(tokens) });
      }
    },
    configureServer(server) {
      server.middlewares.use('/sample', (request, response, next) => {
        const name = sampleFiles.find((file) => request.url === `/${file}`);
        const text = Object.entries(sampleTexts).find(([file]) => request.url === `/${file}`);
        if (text) response.end(textOf(text[1]));
        else if (name) createReadStream(join(sampleFolder, name)).pipe(response);
        else next();
      });
    },
  };
}

/**
 * The picture that others show with a link to the page (`node tests/browser/pictures.mjs link`). They want its whole address: set
 * WASMQUANT_PAGE to that of the page when it is built for a server.
 */
function linkPicture(): Plugin {
  const fileName = 'link.png';
  const page = process.env.WASMQUANT_PAGE;
  const content = page ? new URL(fileName, page.endsWith('/') ? page : `${page}/`).href : `./${fileName}`;
  return {
    name: 'link-picture',
    apply: 'build',
    generateBundle() {
      this.emitFile({ type: 'asset', fileName, source: readFileSync(join(root, fileName)) });
    },
    transformIndexHtml: () => [
      { tag: 'meta', attrs: { property: 'og:image', content }, injectTo: 'head' },
      ...(page ? [{ tag: 'meta', attrs: { property: 'og:url', content: page }, injectTo: 'head' as const }] : []),
    ],
  };
}

/** ONNX Runtime, which most visits do not need: cached when first loaded. */
const isRare = (name: string) => /^assets\/ort-/.test(name);

/** Emits the service worker with the list of what every visit needs. */
function offlineWorker(): Plugin {
  return {
    name: 'offline-worker',
    apply: 'build',
    enforce: 'post',
    generateBundle(_, bundle) {
      const texts = Object.keys(sampleTexts).map((name) => `sample/${name}`);
      const files = [
        './',
        ...texts,
        ...Object.keys(bundle).filter((name) => name.startsWith('assets/') && !isRare(name)),
      ].sort();
      // Names contain content hashes: another build has other names.
      const version = createHash('sha256').update(files.join()).digest('hex').slice(0, 16);
      const source = readFileSync(join(root, 'offline/offline-worker.js'), 'utf8')
        .replace('__VERSION__', version)
        .replace("['__FILES__']", JSON.stringify(files));
      this.emitFile({ type: 'asset', fileName: 'offline-worker.js', source });
    },
  };
}

const withoutPage = [
  ...['index.js', 'internal.js'].map((name) => join(repository, 'dist', name)),
  ...['activations.ts', 'worker-runtime.ts'].map((name) => join(root, 'feeds', name)),
];

export default defineConfig({
  root,
  base: './',
  define: {
    __LINKS__: JSON.stringify(linksOf(JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as Package)),
  },
  appType: 'mpa', // an address that is not there is not the page
  plugins: [contentSecurity(), linkPicture(), sampleModel(), offlineWorker()],
  resolve: {
    alias: [
      { find: /^wasmquant\/onnxruntime$/, replacement: join(repository, 'dist/onnxruntime/onnxruntime.js') },
      { find: /^wasmquant\/internal$/, replacement: join(repository, 'dist/internal.js') },
      { find: /^wasmquant$/, replacement: join(repository, 'dist/index.js') },
      { find: /^wasmquant\/schema/, replacement: join(repository, 'dist/schema') },
    ],
  },
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  worker: { format: 'es' },
  build: {
    outDir: join(repository, 'dist/demo'),
    emptyOutDir: true,
    target: 'es2022',
    // What a script imports on demand may be imported in a worker, which has no document to preload with.
    modulePreload: {
      polyfill: false,
      resolveDependencies: (_, files, { hostType }) =>
        hostType === 'html' ? files : files.filter((file) => file.endsWith('.css')),
    },
    // What a worker of the page needs, the library first: it imports them without the page.
    rolldownOptions: {
      output: {
        codeSplitting: { groups: [{ name: 'library', test: (id) => withoutPage.includes(id) }] },
      },
    },
  },
});
