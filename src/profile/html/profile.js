// SPDX-License-Identifier: Apache-2.0
// Reads the profile that html.cc put into the page; the format is described there.

// The numbers are those of ShownFrame::Kind.
const KINDS = ['process', 'cut', 'user', 'kernel', 'jit', 'unknown'];

async function inflate(base64) {
  const text = atob(base64);
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) packed[i] = text.charCodeAt(i);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// So many of the last parts of a path as fit into `most` characters, but at least one.
function shortPath(path, most) {
  const parts = path.split('/');
  while (parts.length > 1 && parts.join('/').length > most) parts.shift();
  return parts.join('/');
}

const place = (path, line) => line > 0 ? `${path}:${line}` : path;

// Where most of a function's own samples are; if it has none, most of those in its callees.
function hottest(lines) {
  return lines.reduce((best, line) => !best || line.self > best.self ||
      (line.self === best.self && line.total > best.total) ? line : best, undefined);
}

// The distinct frames of the profile, by their index.
class Frames {
  constructor({ names, traits, objects, files = [], lines = [] }) {
    this.names = names;
    this.traits = traits;  // three for each frame: kind, inlined, index of its object
    this.objects = objects;
    this.files = files;
    this.sources = lines;  // four for each line of a frame: index of its file, line, self, total
    this.lowerNames = null;
  }

  get count() { return this.names.length; }
  get anyInlined() { return this.names.some((_, frame) => this.inlined(frame)); }
  name(frame) { return this.names[frame]; }
  kind(frame) { return KINDS[this.traits[3 * frame]]; }
  inlined(frame) { return this.traits[3 * frame + 1] === 1; }
  object(frame) { return this.objects[this.traits[3 * frame + 2]]; }

  // -> [{file, line, self, total}], those with the most samples in all first; not every line is kept
  lines(frame) {
    const numbers = this.sources[frame] ?? [];
    const lines = [];
    for (let i = 0; i < numbers.length; i += 4) {
      const [file, line, self, total] = numbers.slice(i, i + 4);
      lines.push({ file: this.files[file], line, self, total });
    }
    return lines;
  }

  // For each frame whether `term` is in its name, in any case; /term/ is a regular expression.
  // Null if there is nothing to look for. Throws a SyntaxError.
  matching(term) {
    if (term === '') return null;
    const hits = new Uint8Array(this.count);
    const pattern = /^\/(.+)\/$/.exec(term);
    if (pattern) {
      const expression = new RegExp(pattern[1], 'i');
      this.names.forEach((name, frame) => { hits[frame] = expression.test(name) ? 1 : 0; });
    } else {
      this.lowerNames ??= this.names.map((name) => name.toLowerCase());
      const lower = term.toLowerCase();
      this.lowerNames.forEach((name, frame) => { hits[frame] = name.includes(lower) ? 1 : 0; });
    }
    return hits;
  }
}

// -> {facts, frames, tree}
async function readProfile(base64) {
  const bytes = await inflate(base64);
  const factsEnd = 4 + new DataView(bytes.buffer).getUint32(0, true);
  const facts = JSON.parse(new TextDecoder().decode(bytes.subarray(4, factsEnd)));
  const builder = new CallTreeBuilder();
  let at = factsEnd;
  const number = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    builder.keep(number());
    for (let left = number(); left > 0; --left) builder.push(number());
    builder.add(number());
  }
  return { facts, frames: new Frames(facts.frames), tree: builder.finish() };
}
