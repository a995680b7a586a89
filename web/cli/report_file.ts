/** `--report FILE`: rejected before the run if it cannot be written, appears under its name only when complete. */
import { access, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
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

/** Throws if the report cannot be written. `others` are paths of this command line that it must not replace; `option` is the option that names the file. */
export async function checkReportPath(options: ReportOptions, others: string[], option = '--report'): Promise<void> {
  if (options.report === undefined) return;
  const path = resolve(options.report);
  if (others.some((other) => resolve(other) === path)) {
    throw usageError(`${option} names ${options.report}, which this command reads or writes`, 'choose another file');
  }
  if (!(await exists(dirname(path)))) {
    throw new CommandError('target-invalid', `there is no folder ${dirname(path)} for it`, {
      where: options.report,
    });
  }
  if (!(await exists(path))) return;
  if ((await stat(path)).isDirectory()) throw usageError(`${option} names a folder: ${options.report}`);
  if (options.force !== true) {
    throw new CommandError('target-exists', `${options.report} exists already`, {
      hint: '--force replaces it',
    });
  }
}

/** Known paths of a model's files: the argument, and the files in it if it is a folder. */
export function modelPaths(argument: string, model: Model): string[] {
  const folders = [argument, dirname(argument)];
  return [argument, ...folders.flatMap((folder) => model.files.map((file) => resolve(folder, file.name)))];
}

export async function writeReport(path: string, report: object): Promise<void> {
  await writeWhole(path, `${jsonText(report)}\n`);
}

/** The file appears under its name only when complete. */
export async function writeWhole(path: string, contents: string | Uint8Array): Promise<void> {
  const temporary = `${path}.${process.pid}.part`;
  try {
    await writeFile(temporary, contents, { flag: 'wx' });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
