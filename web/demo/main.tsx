// Starts the page: draws it immediately, then loads the library and removes leftovers from browser storage.
import { render } from 'preact';
import { App } from './app/app';
import { start } from './app/start';
import './app/theme.css';
import './app/app.css';
import './app/views.css';
import './open/open.css';
import './configure/configure.css';
import './run/run.css';
import './report/summary.css';
import './report/tensor-table.css';
import './report/tensor-row.css';
import './report/tree.css';
import './inspect/inspect.css';
import './improve/improve.css';
import './compare/compare.css';
import './quality/quality.css';
import './feeds/feeds.css';
import './export/export.css';

const root = document.getElementById('app');
if (root) {
  render(<App />, root);
  void start();
  if (import.meta.env.PROD && 'serviceWorker' in navigator) {
    // Optional: without it the page is only not available offline.
    navigator.serviceWorker.register('./offline-worker.js').catch(() => {});
  }
}
