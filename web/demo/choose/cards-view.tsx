// How small: three cards. Sizes are those of the files.
import type { Speed } from 'wasmquant';
import { isNotFaster, notFaster, runText, speedDetail } from '../../present/speed_text';
import { bytesText, ratioText } from '../../present/units';
import { ruleText } from '../../present/verdict';
import { choice } from '../configure/choice';
import { shortName } from '../configure/scheme-names';
import { type Card, cards, chooseCard, type LossNote } from '../curve/cards';
import { pointId } from '../curve/state';
import { opened } from '../open/opened';
import { isBusy } from '../quality/job';

const titles = { safe: 'Safe', balanced: 'Balanced', smallest: 'Smallest' };

export function LossPill({ note }: { note: LossNote }) {
  const { text, verdict, isMeasured, kind } = note;
  return (
    <span class={`pill pill-${verdict}`} title={`${verdict} (${ruleText(kind)})`}>
      {isMeasured ? text : `about ${text.replace(/^(no visible loss)$/, '0 % more loss')}`}
    </span>
  );
}

function line({ preset, bytes, configText, loss }: Card, before: number): string {
  return [
    `${shortName(preset)}${configText !== null ? ', calibrated' : ''}`,
    ratioText(before, bytes),
    loss === null ? '' : loss.isMeasured ? 'measured' : 'an estimate',
  ]
    .filter(Boolean)
    .join(' · ');
}

/** The time, and below it that it is smaller, not faster. */
function SpeedLine({ speed }: { speed: Speed }) {
  return (
    <span class="fine cards-speed" title={speedDetail(speed)}>
      {runText(speed)}
      {isNotFaster(speed) && <b>{notFaster}</b>}
    </span>
  );
}

export function CardsView() {
  const model = opened.value?.model;
  if (!model) return null;
  const list = cards.value;
  return (
    <fieldset class="cards" disabled={isBusy.value}>
      <legend class="over">How small?</legend>
      {list.map((card) => {
        const isChosen = pointId({ ...card }) === pointId(choice.value);
        return (
          <label key={card.name} class={`card cards-card ${isChosen ? 'cards-chosen' : ''}`}>
            <input
              type="radio"
              name="card"
              class="over-all"
              value={card.name}
              checked={isChosen}
              onChange={() => chooseCard(card)}
            />
            <span class="cards-head">
              <b>{titles[card.name]}</b> {card.loss && <LossPill note={card.loss} />}
            </span>
            <span class="cards-size">{bytesText(card.bytes)}</span>
            <span class="fine">{line(card, model.bytes)}</span>
            {card.speed && <SpeedLine speed={card.speed} />}
          </label>
        );
      })}
      {list.length === 0 && <p class="card fine">Nothing that runs there makes this model smaller.</p>}
    </fieldset>
  );
}
