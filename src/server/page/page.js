// SPDX-License-Identifier: Apache-2.0
// The server renders the page, the first time and every time: what is shown has one source. This
// fetches it again and puts the new state in the old one's place; the flame graph stays.
'use strict';
const PERIOD = 5000;
const live = document.getElementById('live');
const silence = document.getElementById('silence');
let timer = 0;

function isBeingRead() {
  const selection = document.getSelection();
  return !selection.isCollapsed && live.contains(selection.anchorNode);
}

async function refresh() {
  const response = await fetch('/', { cache: 'no-store', signal: AbortSignal.timeout(PERIOD) });
  if (!response.ok) throw new Error(`it answered ${response.status}`);
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  const fresh = page.getElementById('live');
  if (fresh && !isBeingRead()) live.replaceChildren(...fresh.childNodes);
}

async function turn() {
  try {
    await refresh();
    silence.hidden = true;
  } catch (error) {
    silence.textContent = `The agent does not answer; this is what it last said. (${error.message})`;
    silence.hidden = false;
  }
  schedule();
}

function schedule() {
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(turn, PERIOD);
}

document.addEventListener('visibilitychange', () => { if (document.hidden) schedule(); else turn(); });

for (const link of document.querySelectorAll('.spans a[target=flames]')) {
  link.addEventListener('click', () => {
    document.querySelector('.spans a[aria-current]')?.removeAttribute('aria-current');
    link.setAttribute('aria-current', 'true');
    document.getElementById('alone').href = link.href;
  });
}
schedule();
