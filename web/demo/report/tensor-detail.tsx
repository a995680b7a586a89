import { capital } from '../../present/sentence';
import { bytesText, shapeText } from '../../present/units';
import { canLookInto } from '../inspect/kept-model';
import { Values } from '../inspect/values';
import { shownRun } from '../run/runs';
import { ErrorText } from './error-cell';
import { type ErrorKind, rangesOf } from './errors';
import type { Row } from './rows';

/** The one error of the row, of the kind of all rows, with its word and the rule of the word. */
function ErrorFigure({ kind, error }: { kind: ErrorKind; error: number }) {
  return (
    <div class="detail-wide">
      <dt>{capital(kind)}</dt>
      <dd>
        <ErrorText kind={kind} error={error} /> <span class="fine">{rangesOf(kind)}</span>
      </dd>
    </div>
  );
}

export function TensorDetail({ row, kind }: { row: Row; kind: ErrorKind }) {
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
        {row.error !== null && <ErrorFigure kind={kind} error={row.error} />}
      </dl>
      {run && row.hasFigures && canLookInto(run) && <Values run={run} tensor={row.name} />}
    </>
  );
}
