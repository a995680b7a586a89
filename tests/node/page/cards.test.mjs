// The cards: which of the measured sizes are offered. The rule is checked pair by pair on random curves, and on curves of real models.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { moduleOf } from '../cli/web_module.mjs';

function random(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const unseen = 0.002;
const point = (name, bytes, increase) => ({
  name,
  bytes,
  increase,
  unseen,
  verdict: increase <= 0.02 ? 'good' : increase <= 0.12 ? 'visible' : 'bad',
});

test('no card is larger and worse than another scheme, nor under 5 % smaller for twice the loss', async (t) => {
  const { cardsOf } = await moduleOf(t, 'demo/curve/card-choice.ts');
  const next = random(7);
  for (let round = 0; round < 3000; ++round) {
    const candidates = Array.from({ length: 1 + Math.floor(9 * next()) }, (_, i) =>
      point(`${i}`, Math.round(1e6 * (0.5 + 0.5 * next())), next() < 0.1 ? 0 : 10 ** (-4 * next())),
    );
    const cards = [...cardsOf(candidates).values()];
    assert.ok(cards.length > 0);
    for (const card of cards)
      for (const other of candidates) {
        const isLargerAndWorse = card.bytes > other.bytes && card.increase > other.increase;
        assert.ok(!isLargerAndWorse, JSON.stringify({ card, other }));
        const savesLittle = card.bytes > 0.95 * other.bytes && card.bytes <= other.bytes;
        const losesTwice = card.increase >= 2 * Math.max(other.increase, unseen);
        assert.ok(!(savesLittle && losesTwice), JSON.stringify({ card, other }));
      }
    for (const [i, card] of cards.slice(1).entries()) {
      assert.ok(card.bytes <= 0.95 * cards[i].bytes, JSON.stringify(cards));
      assert.ok(card.increase > cards[i].increase, JSON.stringify(cards));
      assert.notEqual(card.verdict, 'bad');
    }
    if (candidates.some(({ verdict }) => verdict === 'good')) assert.equal(cards[0].verdict, 'good');
  }
});

test('of real models the safe card is the careful choice, and others save what they lose', async (t) => {
  const { cardsOf } = await moduleOf(t, 'demo/curve/card-choice.ts');
  const namesOf = (...points) =>
    [...cardsOf(points.map((each) => point(...each)))].map(([card, { name }]) => `${card}: ${name}`);
  // Magika: the smaller of two that are good saves 0.4 % for 1.8 times the error, and 4 bits save 5 % for four times the error.
  assert.deepEqual(
    namesOf(
      ['int8', 824e3, 0.009],
      ['int8 per tensor', 821e3, 0.016],
      ['uint4 g32', 779e3, 0.035],
      ['int4 g128', 768e3, 0.05],
    ),
    ['safe: int8'],
  );
  // A text detector: 2.3 % smaller at 8 times the error is no card.
  assert.deepEqual(namesOf(['int8', 1.29e6, 0.014], ['int4 g32', 1.26e6, 0.11]), ['safe: int8']);
  assert.deepEqual(
    namesOf(['q8_0', 145e6, 0.004], ['q6_k', 128e6, 0.011], ['q4_k_m', 105e6, 0.05], ['q3_k_m', 93.5e6, 0.11]),
    ['safe: q6_k', 'balanced: q4_k_m', 'smallest: q3_k_m'],
  );
  // A loss that nobody can see is not infinitely better than one that is small: a third less is worth it.
  assert.deepEqual(namesOf(['fp8', 3.06e6, 1e-5], ['mxfp4', 1.89e6, 0.025]), ['safe: fp8', 'balanced: mxfp4']);
});

test('inputs on which every scheme is bad say nothing', async (t) => {
  const { saysNothing } = await moduleOf(t, 'demo/curve/card-choice.ts');
  // The same text detector with noise in place of pictures: its outputs are near 0.
  const inVain = [point('int8', 1.29e6, 0.67), point('int4 g32', 1.26e6, 1.24)];
  assert.equal(saysNothing(inVain), true);
  assert.equal(saysNothing([...inVain, point('float16', 2.4e6, 0.004)]), false);
  assert.equal(saysNothing([]), false);
});
