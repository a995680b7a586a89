// Layers with the largest errors first; equal ones share a line. What more bits would buy is tried for the worst.

import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { collapse } from '../../present/collapse';
import { percentText, shownLeft } from '../../present/coverage';
import { capital } from '../../present/sentence';
import { actionText } from '../../present/spec_text';
import { bytesText, countText, plural } from '../../present/units';
import { percent } from '../../present/verdict';
import { explain, type Failure, FailureMessage } from '../app/failure';
import { choice, chosenConfig, dialectOf, useConfig } from '../configure/choice';
import { isEditable } from '../configure/edit-layers';
import { isCalibrated } from '../improve/better';
import { findSuggestions, type Option, suggestions } from '../improve/suggestions';
import { isBusy } from '../quality/job';
import { ErrorText } from '../report/error-cell';
import { type Errors, errorsOf, type LayerError, relativeError, ruleOf, wordOf } from '../report/errors';
import type { FinishedRun } from '../run/runs';

const rowsShown = 8;

interface Group {
  name: string;
  layers: LayerError[];
  worst: number;
}

/** Equal layers whose errors have the same word share a line, with the worst of them. */
function groupsOf({ title, list }: Errors): Group[] {
  const rows = list
    .filter(({ error }) => error !== null)
    .map((layer) => ({ ...layer, name: layer.tensor.name.replace(/\.weight$/, '').replace(/^model\./, '') }));
  return collapse(rows, ({ tensor, error }) =>
    JSON.stringify([actionText(tensor), tensor.shape, wordOf(title, error ?? 0)]),
  )
    .map(({ name, rows: layers }) => ({ name, layers, worst: Math.max(...layers.map(({ error }) => error ?? 0)) }))
    .sort((a, b) => b.worst - a.worst);
}

const signed = (bytes: number) => `${bytes < 0 ? '−' : '+'}${bytesText(Math.abs(bytes))}`;

function Offer({ option, error, done }: { option: Option; error: number; done: FinishedRun }) {
  const { candidate, bytes, sqnrDb } = option;
  const isSame = choice.value.format === done.choice.format;
  const base = isSame ? (chosenConfig.value ?? done.config) : done.config;
  const edited = candidate.edit(base);
  const isApplied = JSON.stringify(edited) === JSON.stringify(base);
  const gain = error - (relativeError(sqnrDb) ?? 0);
  return (
    <button
      type="button"
      class="link"
      disabled={isApplied || isBusy.value || !isSame}
      onClick={() => useConfig(edited)}
    >
      {isApplied && '✓ '}
      {candidate.title}: {signed(bytes)}, −{percent(gain)}
    </button>
  );
}

/** Tries more bits for the worst layers; not after algorithms, whose errors plain rounding cannot be compared with. */
function useSuggestions(done: FinishedRun, failure: { value: Failure | null }) {
  const isTried = !isCalibrated(done) && isEditable(done.config, dialectOf(done.config));
  const busy = isBusy.value;
  useEffect(() => {
    if (!isTried || busy || (suggestions.value?.run === done.number && suggestions.value.isComplete)) return;
    const controller = new AbortController();
    findSuggestions(done, controller.signal).catch((error: unknown) => {
      if (!controller.signal.aborted) failure.value = explain(error, 'No candidate could be tried');
    });
    return () => controller.abort();
  }, [done.number, isTried, busy]);
  return suggestions.value?.run === done.number ? suggestions.value : null;
}

/** The cheapest of the options. */
function cheapest(options: readonly Option[] | undefined): Option | undefined {
  return options?.filter(({ bytes }) => bytes > 0).sort((a, b) => a.bytes - b.bytes)[0] ?? options?.[0];
}

export function WorstLayers({ done }: { done: FinishedRun }) {
  const failure = useSignal<Failure | null>(null);
  const found = useSuggestions(done, failure);
  const errors = errorsOf(done.report);
  const groups = useMemo(() => groupsOf(errors), [errors]);
  const { coverage, tensors, quantized } = done.report.totals;
  const left = coverage.bytes - coverage.quantizedBytes;
  const offers = found?.list ?? [];
  const hasOffers = offers.some(({ options }) => options.length > 0);
  return (
    <section class="card" aria-labelledby="worst">
      <h2 id="worst" class="over">
        Worst layers first{' '}
        <span>
          {countText(quantized)} quantized, {countText(tensors - quantized)} left
        </span>
      </h2>
      {groups.length > 0 && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls sideways must be reachable by keyboard
        <section class="worst-scroll" tabIndex={0} aria-label="Layers by error">
          <table class="worst">
            <thead>
              <tr>
                <th scope="col">layer</th>
                <th scope="col">becomes</th>
                <th scope="col" class="number">
                  size
                </th>
                <th scope="col" class="number" title={ruleOf(errors.title)}>
                  {errors.title}
                </th>
                {hasOffers && <th scope="col">to make it better</th>}
              </tr>
            </thead>
            <tbody>
              {groups.slice(0, rowsShown).map(({ name, layers, worst }) => {
                const offer = offers.find(({ tensor }) => layers.some((layer) => layer.tensor.name === tensor.name));
                const option = cheapest(offer?.options);
                return (
                  <tr key={`${name} ${worst}`}>
                    <td>
                      <code>{name}</code>
                      {layers.length > 1 && ` ×${layers.length}`}
                    </td>
                    <td>{layers[0] && actionText(layers[0].tensor)}</td>
                    <td class="number">{bytesText(layers.reduce((sum, { tensor }) => sum + tensor.bytesAfter, 0))}</td>
                    <td class="number">
                      <ErrorText kind={errors.title} error={worst} />
                    </td>
                    {hasOffers && <td>{option ? <Offer option={option} error={worst} done={done} /> : '–'}</td>}
                  </tr>
                );
              })}
            </tbody>
          </table>
        </section>
      )}
      <p class="fine">
        {groups.length > 0 && `${capital(ruleOf(errors.title))}. `}
        {groups.length > rowsShown && `${countText(groups.length - rowsShown)} more lines: see “Tensors” below. `}
        {left > 0 &&
          `${plural(tensors - quantized, 'tensor')} left as they are, ${bytesText(left)} (${percentText(left, coverage.bytes)} of the model); the largest part: ${shownLeft(coverage.left).shown[0]?.text ?? ''}.`}
      </p>
      {failure.value && <FailureMessage failure={failure.value} />}
    </section>
  );
}
