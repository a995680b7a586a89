import { createQuantizer } from 'wasmquant';
import { choice } from '../configure/choice';
import { firstPreset } from '../configure/formats';
import { removeLeftovers } from '../run/run-folder';
import { quantizer, startFailure } from './engine';
import { explain } from './failure';

export async function start(): Promise<void> {
  try {
    const created = await createQuantizer();
    const names = created.presets().map((preset) => preset.name);
    choice.value = { ...choice.value, preset: names.includes(firstPreset) ? firstPreset : (names[0] ?? '') };
    quantizer.value = created;
    performance.mark('ready');
  } catch (error) {
    startFailure.value = explain(error, 'The quantizer did not start');
  }
  await removeLeftovers();
}
