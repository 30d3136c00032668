// SPDX-License-Identifier: Apache-2.0
// The server renders the page, the first time and every time: what is shown has one source. This
// fetches it again and puts the new state in the old one's place; the flame graph stays.
'use strict';
const PERIOD = 5000;
const live = document.getElementById('live');
const silence = document.getElementById('silence');
const which = document.getElementById('which');
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
  renewChoices(page);
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

// Labels and their values come and go with what runs; what was chosen stays, and so does the list
// that may be open.
function renewChoices(page) {
  for (const fresh of page.querySelectorAll('#which label[data-name]')) {
    const old = [...which.querySelectorAll('label[data-name]')].find(
        (label) => label.dataset.name === fresh.dataset.name);
    if (!old) {
      which.querySelector('button').before(fresh);
      continue;
    }
    if (old.contains(document.activeElement)) continue;
    const [now, then] = [fresh.querySelector('select'), old.querySelector('select')];
    const chosen = then.selectedOptions[0];
    then.replaceChildren(...now.options);
    if (![...then.options].some((option) => option.value === chosen.value)) then.append(chosen);
    then.value = chosen.value;
  }
}

which.querySelector('button').hidden = true;
which.addEventListener('change', () => {
  const chosen = [...new FormData(which)].filter(([, value]) => value !== '');
  document.getElementById('alone').href = '/flamegraph?' + new URLSearchParams(chosen);
  which.requestSubmit();
});
schedule();
