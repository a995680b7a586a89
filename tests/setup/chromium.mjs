// The browser of the browser tests: Chromium or Chrome from WASMQUANT_CHROMIUM or PATH, else installed with apt-get.
import { existsSync } from 'node:fs';
import { findProgram, installPackages, needs } from './command.mjs';

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];

/** Path of a Chromium; installs it as root on Debian, else throws and says what to install. */
export function chromium() {
  const chosen = process.env.WASMQUANT_CHROMIUM;
  if (chosen) {
    if (!existsSync(chosen)) throw needs(`WASMQUANT_CHROMIUM names ${chosen}, which does not exist`);
    return chosen;
  }
  const found = findProgram(...names) ?? (installPackages('chromium') ? findProgram(...names) : null);
  if (!found)
    throw needs('the browser tests need Chromium or Chrome: install it, or set WASMQUANT_CHROMIUM to its path');
  return found;
}
