// Starts the page: draws it immediately, then loads the library and the other states, and removes leftovers from browser storage.
import { render } from 'preact';
import { App, loadViews } from './app/app';
import { start } from './app/start';
import { acceptDrops } from './open/window-drop';
import './app/theme.css';
import './app/app.css';
import './first/first.css';
import './open/open.css';
import './curve/curve.css';

const root = document.getElementById('app');
if (root) {
  render(<App />, root);
  acceptDrops();
  void start().then(loadViews);
  if (import.meta.env.PROD && 'serviceWorker' in navigator) {
    // Optional: without it the page is only not available offline.
    navigator.serviceWorker.register('./offline-worker.js').catch(() => {});
  }
}
