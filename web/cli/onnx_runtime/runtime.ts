/** ONNX Runtime of the user: from the folder that the command runs in, or next to this package. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Model, Quantizer } from '../../lib/node.js';
import { CommandError } from '../failure.js';
import { openModel } from '../model_source.js';
import { kModules, onnxRuntimeInstall, onnxRuntimeTitle } from './name.js';

/** The module, or null if none is installed. */
export async function findOnnxRuntime(): Promise<object | null> {
  for (const name of kModules)
    for (const folder of [process.cwd(), fileURLToPath(new URL('.', import.meta.url))]) {
      const path = resolved(name, folder);
      if (path === null) continue;
      const found = (await import(pathToFileURL(path).href)) as { default?: object };
      return 'InferenceSession' in found ? found : (found.default ?? found);
    }
  return null;
}

/** ONNX Runtime and, if a file is named, the feeds in it. Errors: source-invalid if it is not installed. */
export async function runtimeFor(
  quantizer: Quantizer,
  feeds: string | undefined,
  signal: AbortSignal,
): Promise<{ runtime: object; feeds?: Model }> {
  const runtime = await findOnnxRuntime();
  if (!runtime)
    throw new CommandError('source-invalid', `running the model needs ${onnxRuntimeTitle}, which is not installed`, {
      hint: `${onnxRuntimeInstall}, in this folder`,
    });
  return { runtime, ...(feeds !== undefined && { feeds: await openModel(quantizer, feeds, signal) }) };
}

function resolved(name: string, folder: string): string | null {
  try {
    return createRequire(join(folder, 'any.js')).resolve(name);
  } catch {
    return null;
  }
}
