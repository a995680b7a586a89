// Places that package.json names; before a release it names none. The guides stand next to the page when they were built for it.
declare const __LINKS__: { title: string; address: string }[];

const guides = document.querySelector<HTMLMetaElement>('meta[name="guides"]')?.content;
const ofGuides = guides
  ? [
      { title: 'Guides', address: guides },
      { title: 'API', address: `${guides}modules.html` },
    ]
  : [];

export const links = [...ofGuides, ...__LINKS__.filter(({ title }) => !guides || title !== 'Guides')];
