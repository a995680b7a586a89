/** ONNX Runtime of the user: from the folder that the command runs in, or next to this package. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** onnxruntime-node is the faster one. */
const kModules = ['onnxruntime-node', 'onnxruntime-web'];

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

function resolved(name: string, folder: string): string | null {
  try {
    return createRequire(join(folder, 'any.js')).resolve(name);
  } catch {
    return null;
  }
}
