import { createQuantizer } from 'wasmquant';
import { asksForSample, link } from '../open/deep-link';
import { openSample } from '../open/open-model';
import { removeLeftovers } from '../run/run-folder';
import { quantizer, startFailure } from './engine';
import { explain } from './failure';

export async function start(): Promise<void> {
  try {
    const created = await createQuantizer();
    quantizer.value = created;
    performance.mark('ready');
  } catch (error) {
    startFailure.value = explain(error, 'The quantizer did not start');
  }
  const asked = link.peek();
  if (asked && asksForSample(asked)) await openSample();
  await removeLeftovers();
}
