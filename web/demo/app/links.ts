// Places that package.json names; before a release it names none.
declare const __LINKS__: { title: string; address: string }[];

export const links = __LINKS__;
