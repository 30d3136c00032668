// SPDX-License-Identifier: Apache-2.0
// Sortable tables. Text from the profile becomes text nodes, never markup.

const MAX_ROWS = 200;

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const decimal = new Intl.NumberFormat('en-US');
const percent = (part, whole) => `${(whole > 0 ? 100 * part / whole : 0).toFixed(2)} %`;

// Columns: {title, key, number, cell(row) -> node, share(row) -> 0..1}. Rows: objects with the keys.
// At first the first column sorts.
class TableView {
  constructor(section, { columns, rows, what }) {
    this.section = section;
    this.columns = columns;
    this.rows = rows;
    this.what = what;
    this.sortedBy = columns[0];
    this.descending = true;
    this.isHit = null;
  }

  // Shows only the rows for which `isHit` holds; null: all.
  filter(isHit) {
    this.isHit = isHit;
    if (!this.section.hidden) this.draw();
  }

  draw() {
    const rows = this.isHit ? this.rows.filter(this.isHit) : [...this.rows];
    rows.sort((a, b) => this.#compare(a, b));
    const head = element('tr', {}, ...this.columns.map((column) => this.#heading(column)));
    const body = rows.slice(0, MAX_ROWS).map((row) => this.#row(row));
    this.section.replaceChildren(element('table', {},
        element('caption', {}, this.#caption(rows.length)),
        element('thead', {}, head), element('tbody', {}, ...body)));
  }

  #compare(a, b) {
    const left = a[this.sortedBy.key];
    const right = b[this.sortedBy.key];
    const order = typeof left === 'number' ? left - right : left < right ? -1 : left > right ? 1 : 0;
    return this.descending ? -order : order;
  }

  #heading(column) {
    const button = element('button', { type: 'button' }, column.title);
    button.addEventListener('click', () => this.#sort(column));
    const heading = element('th', { scope: 'col', className: column.number ? 'number' : '' }, button);
    if (column === this.sortedBy) {
      heading.ariaSort = this.descending ? 'descending' : 'ascending';
    }
    return heading;
  }

  #sort(column) {
    this.descending = column === this.sortedBy ? !this.descending : column.number === true;
    this.sortedBy = column;
    this.draw();
    this.section.querySelectorAll('th button')[this.columns.indexOf(column)].focus();
  }

  #row(row) {
    const cells = this.columns.map((column) => {
      const content = column.cell ? column.cell(row) : String(row[column.key]);
      const cell = element('td', { className: column.number ? 'number' : column.key }, content);
      if (column.share) {
        cell.classList.add('share');
        cell.style.setProperty('--share', `${100 * column.share(row)}%`);
      }
      return cell;
    });
    return element('tr', { className: this.isHit ? 'hit' : '' }, ...cells);
  }

  #caption(found) {
    const all = `${decimal.format(found)} ${this.what}`;
    if (found <= MAX_ROWS) return all;
    return `${all}; the first ${MAX_ROWS} are shown. Search to narrow them down.`;
  }
}

// Frames of one function, inlined or not, are one row.
function functionRows(frames, tree) {
  const groups = new Map();
  const group = new Int32Array(frames.count);
  for (let frame = 0; frame < frames.count; ++frame) {
    const key = [frames.kind(frame), frames.object(frame), frames.name(frame)].join('\n');
    if (!groups.has(key)) groups.set(key, { index: groups.size, frame });
    group[frame] = groups.get(key).index;
  }
  const { self, total } = tree.countBy(group, groups.size);
  return [...groups.values()]
      .map(({ index, frame }) => ({ frame, self: self[index], total: total[index],
                                    kind: frames.kind(frame), name: frames.name(frame),
                                    object: frames.object(frame), source: frames.source(frame) }))
      .filter(({ kind }) => kind !== 'process' && kind !== 'cut');
}

function functionTable(section, { frames, tree }, onPick) {
  const share = (key) => [
    { title: key === 'self' ? 'Self' : 'Total', key, number: true,
      cell: (row) => percent(row[key], tree.samples), share: (row) => row[key] / tree.samples },
    { title: 'Samples', key, number: true, cell: (row) => decimal.format(row[key]) },
  ];
  const name = (row) => {
    const button = element('button', { type: 'button', title: 'Find in the flame graph' }, row.name);
    button.addEventListener('click', () => onPick(row.name));
    if (row.kind === 'user') return button;
    return element('span', {}, button, element('i', {}, row.kind === 'unknown' ? 'no name' : row.kind));
  };
  return new TableView(section, {
    columns: [...share('self'), ...share('total'), { title: 'Function', key: 'name', cell: name },
              { title: 'Object', key: 'object' },
              ...(frames.haveSources ? [{ title: 'Source', key: 'source' }] : [])],
    rows: functionRows(frames, tree), what: 'functions' });
}

function processTable(section, { facts, frames, tree }, view, onPick) {
  const rows = view.children(view.root, 0).map((node) => {
    const name = frames.name(node.frame);
    const { pid, count } = facts.processes[name] ?? {};
    return { node, name, frame: node.frame, samples: node.value,
             pids: pid === undefined ? `${decimal.format(count)} processes` : String(pid) };
  });
  const name = (row) => {
    const button = element('button', { type: 'button', title: 'Zoom to it' }, row.name);
    button.addEventListener('click', () => onPick(row.node));
    return button;
  };
  return new TableView(section, {
    columns: [{ title: facts.event.period ? 'Share' : 'CPU', key: 'samples', number: true,
                cell: (row) => percent(row.samples, tree.samples),
                share: (row) => row.samples / tree.samples },
              { title: 'Samples', key: 'samples', number: true,
                cell: (row) => decimal.format(row.samples) },
              { title: 'Process', key: 'name', cell: name }, { title: 'PID', key: 'pids' }],
    rows, what: 'process names' });
}
