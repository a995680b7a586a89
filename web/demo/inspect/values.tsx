// A weight before and after: histogram, grid, values beyond it, and the error of each channel.
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import type { Distribution } from 'wasmquant';
import { countText } from '../../present/units';
import { quantizer } from '../app/engine';
import { explain, type Failure, FailureMessage } from '../app/failure';
import { errorsOf } from '../report/errors';
import type { FinishedRun } from '../run/runs';
import { ChannelStrip } from './channel-strip';
import { Histogram } from './histogram';
import { modelOf } from './kept-model';

function Figure({ found }: { found: Distribution }) {
  const { low, high, grid, beyond, count: all } = found;
  const share = (100 * beyond) / Math.max(1, all);
  const facts = [
    `${countText(all)} values from ${low.toPrecision(3)} to ${high.toPrecision(3)}`,
    grid && `${grid.length} values on the grid`,
    beyond > 0 && `${countText(beyond)} (${share < 0.01 ? '< 0.01' : share.toFixed(2)} %) beyond their channel's grid`,
  ].filter(Boolean);
  return (
    <figure>
      <Histogram found={found} label={`Histogram. ${facts.join(', ')}`} />
      <figcaption class="fine">
        <span class="key key-before">before</span> <span class="key key-after">after</span> how many values, on a
        logarithmic scale · {facts.join(' · ')}
      </figcaption>
    </figure>
  );
}

export function Values({ run, tensor }: { run: FinishedRun; tensor: string }) {
  const found = useSignal<Distribution | null>(null);
  const failure = useSignal<Failure | null>(null);
  useEffect(() => {
    const controller = new AbortController();
    const { signal } = controller;
    const look = async () => {
      try {
        const quantized = await modelOf(run);
        if (signal.aborted) return;
        found.value = (await quantizer.value?.distribution(run.model, quantized, tensor, { signal })) ?? null;
      } catch (error) {
        if (!signal.aborted) failure.value = explain(error, 'The values could not be read');
      }
    };
    void look();
    return () => controller.abort();
  }, [run, tensor]);
  // Errors of weights next to those of outputs would say something else.
  const isOfWeights = errorsOf(run.report).title === 'weight error';
  if (failure.value) return <FailureMessage failure={failure.value} />;
  if (!found.value) return <p class="fine values-waiting">Reading values…</p>;
  return (
    <div class="values">
      <Figure found={found.value} />
      {isOfWeights && found.value.channelSqnrDb && <ChannelStrip sqnr={found.value.channelSqnrDb} />}
    </div>
  );
}
