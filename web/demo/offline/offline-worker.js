// Service worker: after the first visit the page works offline. The files of a build are cached under one version, rare
// ones when they are first loaded; files with a hash in their name come from the cache, the page itself from the
// network if available.
// The build replaces the two constants (vite.config.ts).
const version = '__VERSION__';
const files = ['__FILES__'];

const cacheName = `wasmquant-${version}`;

self.addEventListener('install', (event) => {
  const keep = async () => {
    const cache = await caches.open(cacheName);
    await cache.addAll(files);
    await self.skipWaiting();
  };
  event.waitUntil(keep());
});

self.addEventListener('activate', (event) => {
  const takeOver = async () => {
    const names = await caches.keys();
    const old = names.filter((name) => name.startsWith('wasmquant-') && name !== cacheName);
    await Promise.all(old.map((name) => caches.delete(name)));
    await self.clients.claim();
  };
  event.waitUntil(takeOver());
});

// A host that answers with `Vary: Origin` still has one file at an address.
const anyHeaders = { ignoreVary: true };

/** Cache first; misses are cached. */
async function kept(request) {
  const cache = await caches.open(cacheName);
  const found = await cache.match(request, anyHeaders);
  if (found) return found;
  const response = await fetch(request);
  if (response.ok) await cache.put(request, response.clone());
  return response;
}

/** Network first; responses replace cached ones. */
async function fresh(request) {
  const cache = await caches.open(cacheName);
  try {
    const response = await fetch(request);
    if (response.ok) await cache.put(request, response.clone());
    return response;
  } catch (error) {
    const former = await cache.match(request, { ...anyHeaders, ignoreSearch: true });
    if (former) return former;
    throw error;
  }
}

self.addEventListener('fetch', (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  // Range requests are for models by URL, which are not part of this page.
  if (request.method !== 'GET' || origin !== self.location.origin || request.headers.has('range')) return;
  const scope = new URL(self.registration.scope).pathname;
  if (!pathname.startsWith(scope)) return;
  const path = pathname.slice(scope.length);
  if (path.startsWith('assets/')) event.respondWith(kept(request));
  else if (path === '' || path === 'index.html' || path.startsWith('sample/')) event.respondWith(fresh(request));
});
