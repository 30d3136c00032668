// SPDX-License-Identifier: Apache-2.0
// All stacks as one tree in flat arrays, and two ways to look at it. 50,000 stacks are some hundred
// thousand nodes: objects are made only for those that are on the screen.

// Nodes are in preorder: the descendants of node n are n + 1 up to, not including, end[n].
class CallTree {
  constructor(frame, parent, self, end) {
    this.frame = frame;  // -1: the root, node 0
    this.parent = parent;
    this.self = self;
    this.end = end;
    this.total = Float64Array.from(self);
    for (let node = frame.length - 1; node > 0; --node) {
      this.total[parent[node]] += this.total[node];
    }
  }

  get size() { return this.frame.length; }
  get samples() { return this.total[0]; }

  // The samples whose stack has a frame among `hits`.
  samplesWith(hits) {
    const within = new Uint8Array(this.size);
    let samples = 0;
    for (let node = 1; node < this.size; ++node) {
      within[node] = within[this.parent[node]] | hits[this.frame[node]];
      if (within[node]) samples += this.self[node];
    }
    return samples;
  }

  // Samples by `group[frame]`, of which there are `groups`: in the leaf, and anywhere in the stack,
  // where each stack counts once however often the group recurs in it.
  countBy(group, groups) {
    const self = new Float64Array(groups);
    const total = new Float64Array(groups);
    const inside = new Int32Array(groups);  // how many of the nodes above are of the group
    const path = [];
    for (let node = 1; node < this.size; ++node) {
      while (path.length > 0 && this.end[path.at(-1)] <= node) {
        --inside[group[this.frame[path.pop()]]];
      }
      const g = group[this.frame[node]];
      self[g] += this.self[node];
      if (inside[g]++ === 0) total[g] += this.total[node];
      path.push(node);
    }
    return { self, total };
  }
}

// Takes stacks in the order of their frames: each as keep(n), push(frame)..., add(samples).
class CallTreeBuilder {
  constructor() {
    this.frame = [-1];
    this.parent = [0];
    this.self = [0];
    this.end = [0];
    this.path = [0];
  }

  // The next stack shares its first `count` frames with the one before.
  keep(count) { while (this.path.length > count + 1) this.#leave(); }

  push(frame) {
    this.parent.push(this.path.at(-1));
    this.path.push(this.frame.length);
    this.frame.push(frame);
    this.self.push(0);
    this.end.push(0);
  }

  add(samples) { this.self[this.path.at(-1)] += samples; }

  finish() {
    while (this.path.length > 0) this.#leave();
    return new CallTree(Int32Array.from(this.frame), Int32Array.from(this.parent),
                        Float64Array.from(this.self), Int32Array.from(this.end));
  }

  #leave() { this.end[this.path.pop()] = this.frame.length; }
}

// Views: `root`, and the children of a node that have at least `least` samples, the largest first.
// A node is {frame, value, parent, ...}.

// From the root of the stacks to their leaves.
class TopDownView {
  constructor(tree) {
    this.tree = tree;
    this.root = { frame: -1, value: tree.samples, parent: null, at: 0 };
  }

  children(node, least) {
    const { end, total, frame } = this.tree;
    const found = [];
    for (let at = node.at + 1; at < end[node.at]; at = end[at]) {
      if (total[at] >= least) found.push({ frame: frame[at], value: total[at], parent: node, at });
    }
    return found.sort((a, b) => b.value - a.value);
  }

  self(node) { return this.tree.self[node.at]; }
}

// From the leaves to their callers. A node stands for all the places in the call tree that its
// chain of callers was reached from; `at` and `weight` say where, and with how many samples.
class BottomUpView {
  constructor(tree) {
    this.tree = tree;
    const at = [];
    for (let node = 1; node < tree.size; ++node) if (tree.self[node] > 0) at.push(node);
    this.root = { frame: -1, value: tree.samples, parent: null, at,
                  weight: at.map((node) => tree.self[node]) };
  }

  children(node, least) {
    node.callers ??= this.#callers(node);
    const end = node.callers.findIndex((caller) => caller.value < least);
    return end < 0 ? node.callers : node.callers.slice(0, end);
  }

  self(node) { return node.parent === this.root ? node.value : 0; }

  #callers(node) {
    const { frame, parent } = this.tree;
    const callers = new Map();
    node.at.forEach((place, i) => {
      const up = node === this.root ? place : parent[place];
      if (up === 0) return;
      let caller = callers.get(frame[up]);
      if (!caller) {
        caller = { frame: frame[up], value: 0, parent: node, at: [], weight: [] };
        callers.set(frame[up], caller);
      }
      caller.at.push(up);
      caller.weight.push(node.weight[i]);
      caller.value += node.weight[i];
    });
    return [...callers.values()].sort((a, b) => b.value - a.value);
  }
}
