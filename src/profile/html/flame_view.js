// SPDX-License-Identifier: Apache-2.0
// The flame graph. d3-flame-graph draws it; it gets only the frames that can be seen at this zoom,
// since it makes some elements for each.

const CELL = 18;             // pixels a frame is high
const MIN_WIDTH = 0.8;       // pixels a frame is wide, or it is left out
const MAX_FRAMES = 4000;    // or the narrowest are left out: 5,000 take 0.9 s on a busy machine
const HUES = { process: [266, 45, 80], cut: [2, 68, 70], user: [28, 88, 66], kernel: [214, 66, 73],
               jit: [118, 42, 67], unknown: [215, 10, 75] };

// Neighbours should differ, and one function look the same everywhere: the shade is by its name.
function colorOf(kind, name) {
  let hash = 0;
  for (let i = 0; i < name.length; ++i) hash = (Math.imul(hash, 31) + name.charCodeAt(i)) | 0;
  const [hue, saturation, lightness] = HUES[kind];
  const spread = (hash >>> 3) % 21 - 10;
  return `hsl(${hue + spread} ${saturation}% ${lightness + (hash >>> 9) % 11 - 5}%)`;
}

class FlameView {
  // `tip` is told what is pointed at: show(frame, value, self, focusValue, box) and hide().
  constructor(container, frames, { tip, onZoom }) {
    this.container = container;
    this.frames = frames;
    this.tip = tip;
    this.onZoom = onZoom;
    this.hits = null;
    this.rootOnTop = true;
    this.width = 0;
    this.#listen();
  }

  // Shows another view from its root, or from one of its nodes.
  show(view, node = view.root) {
    this.view = view;
    this.zoom(node);
  }

  zoom(node) {
    this.focus = node;
    this.draw();
    this.onZoom(node);
  }

  zoomOut() { if (this.focus.parent) this.zoom(this.focus.parent); }
  reset() { this.zoom(this.view.root); }

  flip() {
    this.rootOnTop = !this.rootOnTop;
    this.draw();
  }

  // Marks the frames whose byte in `hits` is set; null: none.
  highlight(hits) {
    this.hits = hits;
    this.container.classList.toggle('searching', hits !== null);
    this.#mark();
  }

  // To be called when the space it has may have changed.
  fit() { if (this.container.clientWidth !== this.width) this.draw(); }

  draw() {
    const width = this.container.clientWidth;
    if (width === 0) return;  // not shown
    this.width = width;
    const { data, left } = this.#visible(width);
    this.leftOut = left;
    if (!this.chart) {
      this.chart = this.#makeChart();
      d3.select(this.container).datum(data).call(this.chart.width(width));
    } else {
      // Each drawing is a new one: nothing shall move from where the last one had it.
      d3.select(this.container).selectAll('g').remove();
      this.chart.width(width).inverted(this.rootOnTop).update(data);
    }
    this.#settle(width);
    this.cursor = this.focusDatum;
    this.#mark();
  }

  // Puts in place at once what the library would move there in 250 ms.
  #settle(width) {
    const chart = d3.select(this.container);
    chart.selectAll('rect').interrupt().attr('width', (d) => (d.x1 - d.x0) * width);
    chart.selectAll('.d3-flame-graph-label').interrupt().text(this.chart.getName());
    this.elements = new Map();
    chart.selectAll('g.frame').each((d, i, all) => this.elements.set(d.data, all[i]));
  }

  #makeChart() {
    const name = (node) => node.frame < 0 ? 'all' : this.frames.name(node.frame);
    const tip = () => tip;
    tip.show = (event, d) => this.#point(d.data, event);
    tip.hide = () => this.tip.hide();
    return flamegraph.default()
        .cellHeight(CELL).transitionDuration(0).resetHeightOnZoom(true).inverted(this.rootOnTop)
        .tooltip(tip)
        .getName((d) => name(d.data.node))
        .setColorMapper((d) => {
          const { frame } = d.data.node;
          return colorOf(frame < 0 ? 'unknown' : this.frames.kind(frame), name(d.data.node));
        });
  }

  // The focus with what lies below it and is wide enough, under a chain of its ancestors.
  #visible(width) {
    let least = this.focus.value * MIN_WIDTH / width;
    let made = this.#subtree(least);
    while (made.count > MAX_FRAMES) made = this.#subtree(least *= 1.2);
    let data = made.data;
    this.focusDatum = data;
    for (let node = this.focus.parent; node; node = node.parent) {
      const above = { node, value: this.focus.value, fade: true, children: [data] };
      data.parent = above;
      data = above;
    }
    return { data, left: least * width / this.focus.value };
  }

  #subtree(least) {
    const data = { node: this.focus, value: this.focus.value, parent: null };
    const open = [data];
    let count = 1;
    while (open.length > 0 && count <= MAX_FRAMES) {
      const parent = open.pop();
      parent.children = this.view.children(parent.node, least)
          .map((node) => ({ node, value: node.value, parent }));
      count += parent.children.length;
      open.push(...parent.children);
    }
    return { data, count };
  }

  #mark() {
    d3.select(this.container).selectAll('g.frame')
        .classed('inlined', ({ data }) => data.node.frame >= 0 && this.frames.inlined(data.node.frame))
        .classed('hit', ({ data }) => this.hits !== null && data.node.frame >= 0 &&
                                      this.hits[data.node.frame] === 1)
        .classed('cursor', ({ data }) => data === this.cursor && data !== this.focusDatum);
  }

  #point(datum, event) {
    const { node } = datum;
    const box = event ?? this.elements.get(datum).getBoundingClientRect();
    this.tip.show({ frame: node.frame, value: node.value, self: this.view.self(node),
                    focusValue: this.focus.value, x: event ? event.clientX : box.left,
                    y: event ? event.clientY : box.bottom });
  }

  #listen() {
    // Before the library sees it: its own zoom knows only the frames that are drawn.
    this.container.addEventListener('click', (event) => {
      event.stopPropagation();
      const element = event.target.closest('g.frame');
      if (element) this.#activate(d3.select(element).datum().data);
    }, true);
    this.container.addEventListener('keydown', (event) => {
      const move = { ArrowLeft: () => this.#sibling(-1), ArrowRight: () => this.#sibling(1),
                     ArrowUp: () => this.#level(!this.rootOnTop),
                     ArrowDown: () => this.#level(this.rootOnTop) }[event.key];
      if (move) {
        this.#moveTo(move());
      } else if (event.key === 'Enter') {
        this.#activate(this.cursor);
      } else if (event.key === 'Backspace') {
        this.zoomOut();
      } else {
        return;
      }
      event.preventDefault();
    });
    this.container.addEventListener('blur', () => this.tip.hide());
  }

  #activate(datum) {
    this.tip.hide();
    this.zoom(datum.node);
  }

  #sibling(step) {
    const siblings = this.cursor.parent?.children ?? [];
    return siblings[siblings.indexOf(this.cursor) + step];
  }

  #level(away) { return away ? this.cursor.children?.[0] : this.cursor.parent; }

  #moveTo(datum) {
    if (!datum) return;
    this.cursor = datum;
    this.#mark();
    this.elements.get(datum).scrollIntoView({ block: 'nearest' });
    this.#point(datum);
  }
}
