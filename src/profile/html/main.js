// SPDX-License-Identifier: Apache-2.0
// Joins the parts. What is shown can be asked for in the address: #view=bottom-up&search=memcpy

const byId = (id) => document.getElementById(id);

// When a sample was taken: a clock's frequency, or a counted event's period.
function rhythm({ event, lowestHertz }) {
  if (event.period === 1) return ['Sampled', `all ${event.noun}`];
  if (event.period) return ['Sampled', `one of ${decimal.format(event.period)} ${event.noun}`];
  const lowest = lowestHertz ?? event.hertz;
  return ['Frequency', `${lowest < event.hertz ? `${lowest} to ` : ''}${event.hertz} Hz`];
}

function fillHeader(facts, tree) {
  const cut = Object.values(facts.cut).reduce((sum, n) => sum + n, 0);
  const { noun, period, value } = facts.event;
  const reasons = (counts) =>
      Object.entries(counts).map(([name, n]) => `${name} ${decimal.format(n)}`).join(', ');
  const add = (term, text) => byId('facts').append(
      element('div', {}, element('dt', {}, term), element('dd', {}, text)));
  byId('title').textContent = facts.title;
  if (facts.host) add('Host', facts.host);
  add('Recorded', `${new Date(facts.start).toISOString().slice(0, 19).replace('T', ' ')} UTC`);
  add('Duration', `${facts.seconds.toFixed(1)} s`);
  add(...rhythm(facts));
  if (facts.filter) {
    add('Only', `${facts.filter.words} (${percent(tree.samples, facts.filter.of)} of ` +
        `${decimal.format(facts.filter.of)} samples)`);
  }
  add('Samples', decimal.format(tree.samples));
  add(noun[0].toUpperCase() + noun.slice(1),
      period ? decimal.format(value) : `${value.toFixed(1)} s`);
  add('Stacks cut', cut === 0 ? 'none' :
      `${decimal.format(cut)} (${percent(cut, tree.samples)}: ${reasons(facts.cut)})`);
  if (facts.accounting) {
    const { ticks, exported, idle, filtered, lost, reasons: why, undelivered } = facts.accounting;
    const n = (value) => decimal.format(value);
    add('Accounting', `${n(ticks)} ticks = ${n(exported)} exported + ${n(idle)} idle + ` +
        `${n(filtered)} filtered + ${n(lost)} lost${lost > 0 ? ` (${reasons(why)})` : ''}; ` +
        `${n(undelivered)} undelivered`);
  }
  for (const [key, value] of facts.labels) add(key, value);
}

// The box that says what the pointer, or the keyboard's cursor, is on.
class Tip {
  constructor(box, frames, samples) {
    this.box = box;
    this.frames = frames;
    this.samples = samples;
  }

  show({ frame, value, self, focusValue, x, y }) {
    const numbers = [`${decimal.format(value)} samples`, `${percent(value, this.samples)} of all`];
    if (focusValue < this.samples) numbers.push(`${percent(value, focusValue)} of the zoomed frame`);
    if (frame >= 0) numbers.push(`${decimal.format(self)} self`);
    const lines = [element('b', {}, frame < 0 ? 'all' : this.frames.name(frame)),
                   element('span', {}, numbers.join(' · '))];
    if (frame >= 0) lines.push(element('span', {}, this.#origin(frame)));
    this.box.replaceChildren(...lines);
    this.box.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.box;
    this.box.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - width - 8))}px`;
    this.box.style.top = `${y + 18 + height > innerHeight ? Math.max(4, y - height - 12) : y + 18}px`;
  }

  hide() { this.box.hidden = true; }

  #origin(frame) {
    const texts = { process: 'process', cut: 'the frames towards the root are missing' };
    const kind = this.frames.kind(frame);
    const inlined = this.frames.inlined(frame) ? ', inlined' : '';
    return texts[kind] ?? [this.frames.source(frame), this.frames.object(frame), `${kind}${inlined}`].filter(Boolean).join(' · ');
  }
}

class Page {
  constructor(profile) {
    this.profile = profile;
    const { frames, tree } = profile;
    this.topDown = new TopDownView(tree);
    this.flame = new FlameView(byId('flame'), frames, {
      tip: new Tip(byId('tip'), frames, tree.samples), onZoom: (node) => this.#zoomed(node) });
    this.tables = {};
    this.view = null;
  }

  // Tables and the bottom-up view are made when they are first asked for.
  show(view, node) {
    const isGraph = view === 'flame' || view === 'bottom-up';
    byId('graph').hidden = !isGraph;
    for (const id of ['functions', 'processes']) byId(id).hidden = id !== view;
    for (const button of byId('views').children) {
      button.ariaPressed = String(button.dataset.view === view);
    }
    if (isGraph) {
      this.bottomUp ??= view === 'bottom-up' ? new BottomUpView(this.profile.tree) : undefined;
      if (view !== this.graph || node) {
        this.graph = view;
        this.flame.show(view === 'flame' ? this.topDown : this.bottomUp, node);
      }
    } else {
      this.tables[view] ??= this.#makeTable(view);
      this.#filter(this.tables[view]);
      this.tables[view].draw();
    }
    byId('flip').disabled = !isGraph;
    byId('reset').disabled = !isGraph || !this.flame.focus?.parent;
    this.view = view;
  }

  search(term) {
    byId('search').value = term;
    try {
      this.hits = this.profile.frames.matching(term.trim());
      byId('search').setCustomValidity('');
    } catch (error) {
      byId('search').setCustomValidity(error.message);
      byId('matched').textContent = 'not a regular expression';
      return;
    }
    const { tree } = this.profile;
    const found = this.hits ? tree.samplesWith(this.hits) : 0;
    byId('matched').textContent =
        this.hits ? `${percent(found, tree.samples)} (${decimal.format(found)} samples)` : '';
    this.flame.highlight(this.hits);
    for (const table of Object.values(this.tables)) this.#filter(table);
  }

  // What Esc takes back, one thing at a time.
  back() {
    if (byId('search').value) this.search('');
    else if (!byId('graph').hidden) this.flame.reset();
  }

  listen() {
    byId('views').addEventListener('click', ({ target }) => {
      if (target.dataset.view) this.show(target.dataset.view);
    });
    byId('search').addEventListener('input', ({ target }) => this.search(target.value));
    byId('reset').addEventListener('click', () => this.flame.reset());
    byId('flip').addEventListener('click', () => this.flame.flip());
    byId('theme').addEventListener('click', switchTheme);
    document.addEventListener('keydown', (event) => this.#key(event));
    new ResizeObserver(() => this.flame.fit()).observe(byId('flame'));
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target === byId('search');
    if (event.key === 'Escape') {
      if (typing && !byId('search').value) byId('search').blur();
      else this.back();
    } else if (event.key === '/' && !typing) {
      byId('search').select();
      byId('search').focus();
    } else if (event.key === 't' && !typing) {
      switchTheme();
    } else if (event.key === 'f' && !typing && !byId('graph').hidden) {
      this.flame.flip();
    } else {
      return;
    }
    event.preventDefault();
  }

  #makeTable(view) {
    if (view === 'functions') {
      return functionTable(byId(view), this.profile, (name) => {
        this.search(name);
        this.show('flame');
      });
    }
    return processTable(byId(view), this.profile, this.topDown, (node) => this.show('flame', node));
  }

  #filter(table) {
    const { hits } = this;
    table.filter(hits ? (row) => hits[row.frame] === 1 : null);
  }

  #zoomed(node) {
    byId('reset').disabled = node.parent === null;
    const width = this.flame.leftOut;
    byId('hidden-frames').textContent = !(width > 0) ? '' :
        `Frames narrower than ${width.toFixed(1)} pixels are left out; zoom in to see them.`;
  }
}

function switchTheme() {
  const { dataset } = document.documentElement;
  const dark = dataset.theme ? dataset.theme === 'dark'
                             : matchMedia('(prefers-color-scheme: dark)').matches;
  dataset.theme = dark ? 'light' : 'dark';
}

function say(text) {
  byId('message').textContent = text;
  byId('message').hidden = false;
}

async function start() {
  if (typeof DecompressionStream === 'undefined') {
    throw new Error('this browser is too old; any of 2023 or later will do');
  }
  const profile = await readProfile(byId('profile').textContent);
  byId('profile').remove();
  fillHeader(profile.facts, profile.tree);
  const page = new Page(profile);
  const wish = new URLSearchParams(location.hash.slice(1));
  const theme = wish.get('theme');
  if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
  const known = [...byId('views').children].map((button) => button.dataset.view);
  page.show(known.includes(wish.get('view')) ? wish.get('view') : 'flame');
  if (wish.get('search')) page.search(wish.get('search'));
  page.listen();
  if (profile.tree.samples === 0) say('There are no samples.');
  performance.mark('pyrometer-ready');
}

start().catch((error) => say(`The profile cannot be shown: ${error.message}`));
