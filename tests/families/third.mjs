// Every third of a list, day by day in turn.
const millisecondsADay = 86_400_000;

/** `third`: 0, 1, 2 or date. */
export const thirdOf = (third) => (third === 'date' ? Math.floor(Date.now() / millisecondsADay) % 3 : Number(third));

/** All of them, where `third` is undefined. */
export const everyThird = (list, third) => list.filter((_, i) => third === undefined || i % 3 === thirdOf(third));
