import { bytesText, decibels, shapeText } from '../../present/units';
import { canLookInto } from '../inspect/kept-model';
import { Values } from '../inspect/values';
import { shownRun } from '../run/runs';
import type { Row } from './rows';

function ErrorFigures({ error }: { error: NonNullable<Row['figures']> }) {
  const figures = [
    ['SQNR of the weight', `${decibels(error.sqnrDb)} dB`],
    ['Mean squared error', error.mse.toExponential(3)],
    ['Largest error', error.maxAbs.toExponential(3)],
    ['Cosine', error.cosine.toFixed(6)],
  ];
  return (
    <>
      {figures.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </>
  );
}

export function TensorDetail({ row }: { row: Row }) {
  const run = shownRun.value;
  return (
    <>
      <dl class="tensor-detail">
        <div class="detail-wide">
          <dt>Why</dt>
          <dd>
            {row.reason.text} {row.reason.where && <code>{row.reason.where}</code>}
          </dd>
        </div>
        <div class="detail-wide">
          <dt>Written</dt>
          <dd>
            <ul>
              {row.outputs.map((output) => (
                <li key={output.name}>
                  <code>{output.name}</code>{' '}
                  <span class="fine">
                    {output.dtype} {shapeText(output.shape)}, {bytesText(output.bytes)}
                  </span>
                </li>
              ))}
            </ul>
          </dd>
        </div>
        {row.figures && <ErrorFigures error={row.figures} />}
      </dl>
      {run && row.figures && canLookInto(run) && <Values run={run} tensor={row.name} />}
    </>
  );
}
