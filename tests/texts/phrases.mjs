// Phrases that no text of this project has, and what to write instead. `allowed` are places of the phrase that are
// good English, each with its reason; an allowance that no text needs is reported.

/** A phrase: `pattern` finds it in a text whose line breaks count as spaces, `instead` says what to write. */
export const phrases = [
  {
    pattern: /\balone\b/gi,
    instead: '"only"',
    // To leave something alone is not to touch it, and what stands alone has nothing next to it.
    allowed: /\b(leav(e|es|ing)|left|let|stands?|standing)( \S+){0,3} alone\b/gi,
  },
  {
    pattern: /\bbesides?\b/gi,
    instead: '"next to", "with", "compared with", "in addition to" or "apart from"',
  },
  {
    pattern: /\bt(ake|akes|aken|aking|ook)( it| them)? up\b(?! to| (space|memory|[\d,.]+))/gi,
    instead: 'the verb that is meant: fold, accept, continue',
  },
  { pattern: /\bwhatever\b/gi, instead: '"any", "regardless of" or "no matter what"' },
  {
    pattern: /\bwhat( \S+){1,4} (makes|becomes|was made)\b/gi,
    instead: 'a noun, such as "the result of"',
  },
  { pattern: /\bexpected (was|were)\b/gi, instead: '"expected N, found M"' },
  { pattern: /\bgiven (was|were)\b/gi, instead: '"got N"' },
  { pattern: /\bhere is none\b/gi, instead: '"this has none"' },
  { pattern: /\b(is|are) of another\b/gi, instead: '"belongs to another", "has another"' },
  { pattern: /\blets?( \S+){1,3} speak\b/gi, instead: 'the verb that is meant' },
  { pattern: /\bby turns\b/gi, instead: '"in turn", "alternately"' },
  { pattern: /\bto the letter\b/gi, instead: '"exactly"' },
  { pattern: /\b(go|goes|going|went) on (from|with)\b/gi, instead: '"continue"' },
];

/** Single places where a phrase is right: `file`, a part of the line, the reason. */
export const exceptions = [];
