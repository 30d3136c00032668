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

// The distinct frames of the profile, by their index.
class Frames {
  constructor({ names, traits, objects, sources }) {
    this.names = names;
    this.traits = traits;  // four for each frame: kind, inlined, index of its object, of its source
    this.objects = objects;
    this.sources = sources;
    this.lowerNames = null;
  }

  get count() { return this.names.length; }
  name(frame) { return this.names[frame]; }
  kind(frame) { return KINDS[this.traits[4 * frame]]; }
  inlined(frame) { return this.traits[4 * frame + 1] === 1; }
  object(frame) { return this.objects[this.traits[4 * frame + 2]]; }
  // Where the function begins, '' if that is not known; and whether it is of any.
  source(frame) { return this.sources[this.traits[4 * frame + 3]]; }
  get haveSources() { return this.sources.some((source) => source !== ''); }

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
