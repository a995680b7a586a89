/** dist/cli.js, the file that package.json names. What it loads is CommonJS, which Node starts in half the time. */
import { createRequire } from 'node:module';

createRequire(import.meta.url)('./cli/main.cjs');
