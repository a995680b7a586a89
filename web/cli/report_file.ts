/** `--report FILE`: rejected before the run if it cannot be written, appears under its name only when complete. */
import { access, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Model } from '../lib/node.js';
import type { ReportOptions } from './args.js';
import { CommandError, usageError } from './failure.js';
import { jsonText } from './terminal.js';

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}

/** Device and inode, which a file has under every name: links, and folders that are mounted twice. */
async function identityOf(path: string): Promise<string> {
  const found = await stat(path, { bigint: true }).catch(() => null);
  return found ? `${found.dev}:${found.ino}` : resolve(path);
}

/** Throws if the report cannot be written. `others` are paths of this command line that it must not replace; `option` is the option that names the file. */
export async function checkReportPath(
  options: ReportOptions,
  others: (string | undefined)[],
  option = '--report',
): Promise<void> {
  if (options.report === undefined) return;
  const path = resolve(options.report);
  const identity = await identityOf(path);
  for (const other of others) {
    if (other === undefined || (await identityOf(other)) !== identity) continue;
    throw usageError(`${option} names ${options.report}, which this command reads or writes`, 'choose another file');
  }
  if (!(await exists(dirname(path)))) {
    throw new CommandError('target-invalid', `there is no folder ${dirname(path)} for it`, {
      where: options.report,
    });
  }
  if (await exists(path)) {
    if ((await stat(path)).isDirectory()) throw usageError(`${option} names a folder: ${options.report}`);
    if (options.force !== true) {
      throw new CommandError('target-exists', `${options.report} exists already`, {
        hint: '--force replaces it',
      });
    }
  }
  await tryToWrite(path, options.report);
}

/** Makes the temporary file of `writeWhole` and removes it: permissions do not reveal read-only mounts and names that are too long. */
async function tryToWrite(path: string, shown: string): Promise<void> {
  const temporary = temporaryOf(path);
  try {
    await writeFile(temporary, '', { flag: 'wx' });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandError('target-invalid', `it cannot be written: ${reason}`, {
      where: shown,
      hint: 'choose another place; nothing has been done yet',
    });
  }
  await rm(temporary, { force: true });
}

/** Read with a single file of weights, from its folder. */
const filesNextToWeights = ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'hf_quant_config.json'];

/** Importance matrices, which are kept next to a model and may be replaced. */
const isImatrixName = (name: string) => /\.(gguf|dat)$/i.test(name);

/** Paths of a model: the argument, its weights, and all of a folder, whose small files are read and copied. */
export async function modelPaths(argument: string, model: Model): Promise<string[]> {
  const names = await readdir(argument).catch(() => null);
  const folder = names ? argument : dirname(argument);
  const read = [
    ...model.files.map((file) => file.name),
    ...(names?.filter((name) => !isImatrixName(name)) ?? filesNextToWeights),
  ];
  return [argument, ...read.map((name) => join(folder, name))];
}

export async function writeReport(path: string, report: object): Promise<void> {
  await writeWhole(path, `${jsonText(report)}\n`);
}

const temporaryOf = (path: string) => `${path}.${process.pid}.part`;

/** The file appears under its name only when complete. */
export async function writeWhole(path: string, contents: string | Uint8Array): Promise<void> {
  const temporary = temporaryOf(path);
  try {
    await writeFile(temporary, contents, { flag: 'wx' });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
