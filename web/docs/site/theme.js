// A way back from the guides to the page, which is served one folder above them, and groups of guides that begin open.
const page = document.createElement('a');
page.href = `${document.documentElement.dataset.base}../index.html`;
page.textContent = 'The page';
document.getElementById('tsd-toolbar-links')?.append(page);

// TypeDoc remembers under these keys what a reader has opened and closed.
for (const group of ['Run it in', 'Guides', 'Reference']) {
  const key = `tsd-accordion-${group}`;
  if (localStorage.getItem(key) === null) localStorage.setItem(key, 'true');
}
