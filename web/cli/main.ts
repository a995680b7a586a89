/** `wasmquant`. Compiled code is kept from one start to the next where Node can (22.8 and newer). */
import module from 'node:module';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';

/** Of this user, since others could put code into a folder that they may write to; null if this user has no folder. */
function cacheFolder(): string | null {
  const { XDG_CACHE_HOME, LOCALAPPDATA } = process.env;
  const home = homedir();
  const usual = { win32: LOCALAPPDATA, darwin: home && join(home, 'Library', 'Caches') } as Record<
    string,
    string | undefined
  >;
  const folder = process.platform in usual ? usual[process.platform] : XDG_CACHE_HOME || (home && join(home, '.cache'));
  return folder && isAbsolute(folder) ? join(folder, 'wasmquant') : null;
}

/** What is loaded after this is kept, also what the threads of the command load, which inherit the variable. */
function keepCompiledCode(): void {
  const { enableCompileCache } = module as { enableCompileCache?: (folder: string) => { directory?: string } };
  const folder = cacheFolder();
  if (!enableCompileCache || process.env.NODE_COMPILE_CACHE || folder === null) return;
  if (enableCompileCache(folder).directory !== undefined) process.env.NODE_COMPILE_CACHE = folder;
}

keepCompiledCode();
void import('./program/program.js').then(({ main }) => main());
