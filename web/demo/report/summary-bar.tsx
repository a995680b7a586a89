// What the run costs and saves. Sizes are those of files, and exact before the run.
import { percentText } from '../../present/coverage';
import { isOfSize } from '../../present/output_size';
import { bytesText, countText, decibels, durationText, ratioText } from '../../present/units';
import { planned } from '../configure/choice';
import { shownReport } from '../run/runs';
import { LeftList } from './left-list';
import { SizeBar } from './size-bar';

function Figure({ label, value, note }: { label: string; value: string; note?: string }) {
  return (
    <div class="figure">
      <dt>{label}</dt>
      <dd>
        {value}
        {note && <span class="fine">{note}</span>}
      </dd>
    </div>
  );
}

export function SummaryBar() {
  const { plan } = planned.value;
  if (!plan) return null;
  const report = shownReport.value;
  const { tensors, quantized, bytesBefore, bytesAfter, bitsPerWeight, coverage } = report?.totals ?? plan.totals;
  const larger = plan.diagnostics.find(isOfSize);
  const measured = report?.tensors.flatMap(({ error }) => (error ? [error.sqnrDb] : [])) ?? [];
  const lowest = Math.min(...measured);
  return (
    <section class="summary-section" aria-label="Summary">
      {larger && (
        <p class="message message-warning" role="status">
          {larger.message}; {larger.hint}
        </p>
      )}
      <SizeBar plan={plan} />
      <dl class="summary">
        <Figure
          label="File size"
          value={`${bytesText(bytesBefore)} → ${bytesText(bytesAfter)}`}
          note={ratioText(bytesBefore, bytesAfter)}
        />
        <Figure
          label="Bits per quantized weight"
          value={quantized > 0 ? bitsPerWeight.toFixed(2) : '–'}
          note="with scales"
        />
        <Figure label="Tensors quantized" value={countText(quantized)} note={`of ${countText(tensors)}`} />
        <Figure
          label="Parameters quantized"
          value={percentText(coverage.quantizedParameters, coverage.parameters)}
          note={`${percentText(coverage.quantizedBytes, coverage.bytes)} of bytes`}
        />
        <Figure
          label="Lowest SQNR"
          value={measured.length > 0 ? `${decibels(lowest)} dB` : '–'}
          note={measured.length > 0 ? undefined : report ? 'nothing to measure' : 'after the run'}
        />
        {report && (
          <Figure
            label="Run"
            value={durationText(report.durationMs)}
            note={
              (report.threads > 0 ? `${report.threads} workers` : 'one thread') +
              (report.reused ? `, ${countText(report.reused)} tensors kept` : '')
            }
          />
        )}
      </dl>
      <LeftList coverage={coverage} />
    </section>
  );
}
