// Links of a page to files and headings of the checkout.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/command.mjs';

/** Anchors as GitHub and TypeDoc make them: words in lower case, joined by hyphens; a second one of a name gets a number. */
function anchorsOf(markdown) {
  const seen = new Map();
  return new Set(
    [...markdown.replace(/^```[\s\S]*?^```/gm, '').matchAll(/^#+ (.+)$/gm)].map(([, heading]) => {
      const plain = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
      const anchor = plain.replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-');
      const count = seen.get(anchor) ?? 0;
      seen.set(anchor, count + 1);
      return count === 0 ? anchor : `${anchor}-${count}`;
    }),
  );
}

/** One sentence for each link that leads nowhere. */
export function* linkProblems(page, markdown) {
  for (const [, link, anchor] of markdown.matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)) {
    const path = link === '' ? join(root, page) : join(root, page, '..', link);
    if (!existsSync(path)) yield `links to ${link}, which does not exist`;
    else if (anchor && path.endsWith('.md') && !anchorsOf(readFileSync(path, 'utf8')).has(anchor))
      yield `links to ${link}#${anchor}, and no heading there has that name`;
  }
}
