// What the page's policy forbids to markup and scripts that a name could bring in if it ever became more than text. In
// Chromium: each is tried, and the policy has to name the directive that stopped it.
import { startBrowser } from '../browser/browser.mjs';

/** In the page. Answers with what was tried, the directive that must forbid it and those that did; and whether code ran. */
async function tryEverything() {
  const place = document.body;
  const append = (tag, properties) => place.appendChild(Object.assign(document.createElement(tag), properties));
  const insert = (markup) => place.insertAdjacentHTML('beforeend', markup);
  const elsewhere = 'https://example.invalid/';
  const code = 'window.hit = 1';
  const script = `data:text/javascript,${code}`;
  const attempts = [
    // biome-ignore lint/security/noGlobalEval: what the policy forbids is what is tried
    ['eval', 'script-src', () => globalThis.eval(code)],
    ['new Function', 'script-src', () => new Function(code)()],
    ['a timer with text', 'script-src', () => setTimeout(code, 0)],
    ['an inline script', 'script-src-elem', () => append('script', { textContent: code })],
    ['a script of data', 'script-src-elem', () => append('script', { src: script })],
    ['a foreign script', 'script-src-elem', () => append('script', { src: elsewhere })],
    ['an imported script', 'script-src-elem', () => import(script)],
    ['a javascript: link', 'script-src-elem', () => append('a', { href: `javascript:${code}` }).click()],
    ['an inline handler', 'script-src-attr', () => insert(`<img src="data:," onerror="${code}">`)],
    ['an inline style sheet', 'style-src-elem', () => append('style', { textContent: '* { display: none }' })],
    ['a foreign style sheet', 'style-src-elem', () => append('link', { rel: 'stylesheet', href: elsewhere })],
    ['an inline style', 'style-src-attr', () => insert('<b style="display: none"></b>')],
    ['a foreign picture', 'img-src', () => append('img', { src: elsewhere })],
    ['a fetch without TLS', 'connect-src', () => fetch('http://example.invalid/')],
    ['a socket', 'connect-src', () => new WebSocket('ws://example.invalid/')],
    ['a beacon without TLS', 'connect-src', () => navigator.sendBeacon('http://example.invalid/', 'x')],
    ['a foreign frame', 'frame-src', () => append('iframe', { src: elsewhere })],
    ['a frame of data', 'frame-src', () => append('iframe', { src: 'data:text/html,x' })],
    ['a worker of data', 'worker-src', () => new Worker(script)],
    ['a foreign film', 'media-src', () => append('video', { src: elsewhere })],
    ['a foreign font', 'font-src', () => new FontFace('x', `url(${elsewhere})`).load()],
    ['a foreign object', 'object-src', () => append('object', { data: elsewhere })],
    ['another base', 'base-uri', () => append('base', { href: elsewhere })],
    ['a foreign form', 'form-action', () => append('form', { action: elsewhere }).submit()],
  ];
  const outcomes = [];
  for (const [what, expected, attempt] of attempts) {
    const told = [];
    const listen = (event) => told.push(event.effectiveDirective);
    document.addEventListener('securitypolicyviolation', listen);
    // From a timer: what the debugger evaluates is above the policy.
    setTimeout(async () => {
      try {
        await attempt();
      } catch {}
    });
    for (let waited = 0; waited < 100 && told.length === 0; ++waited)
      await new Promise((resolve) => setTimeout(resolve, 20));
    document.removeEventListener('securitypolicyviolation', listen);
    outcomes.push({ what, expected, told });
  }
  return { outcomes, ran: 'hit' in window };
}

export async function pagePolicy(_folder, check) {
  const browser = await startBrowser();
  try {
    const { page, close } = await browser.open();
    const { outcomes, ran } = await page.evaluate(tryEverything);
    for (const { what, expected, told } of outcomes)
      check(told.includes(expected), `${what}: ${expected} expected, ${told.join() || 'nothing'} said no`);
    check(!ran, 'code ran');
    await close();
  } finally {
    await browser.close();
  }
}
