// Reads files with parsers that kaitai-struct-compiler makes from .ksy files,
// and prints what they found as JSON. The Go tests of gen compare that with
// what the Go codecs read.
//
// Usage: node read.js <request, with the request on standard input:
//
//   {"folders": ["docs/format/ksy"],
//    "jobs": [{"schema": "message_records", "type": "message", "hex": "00..."},
//             {"schema": "commitlog_segment", "file": "commitlog/0000..."},
//             {"schema": "message_records", "languages": true}]}
//
// A job without a type reads the schema's own sequence. One with languages
// compiles the schema for every language that the compiler knows. The answer
// is a list with an object for each job: {"value": ..., "left": unread bytes},
// {"languages": [...], "refused": ["perl: why"]} or {"error": "..."}.
//
// Integers come as JSON numbers with all digits, bytes as strings of hex
// digits, strings as they are, absent attributes not at all. The runtime reads
// integers of 64 bits as JavaScript numbers, which lose bits from 2^53 on; so
// they are read once more here, exactly. What is computed from them by an
// expression and no longer exact comes as "inexact".
'use strict';

const fs = require('fs');
const path = require('path');
const compiler = require('kaitai-struct-compiler');
const KaitaiStream = require('kaitai-struct/KaitaiStream');
const YAML = require('yaml');

// Exact is an integer of 64 bits: a number in expressions, with all its bits
// beside.
class Exact extends Number {
  constructor(big) {
    super(Number(big));
    this.big = big;
  }
}

for (const [name, read, little] of [
  ['readU8be', 'getBigUint64', false], ['readU8le', 'getBigUint64', true],
  ['readS8be', 'getBigInt64', false], ['readS8le', 'getBigInt64', true],
]) {
  KaitaiStream.prototype[name] = function () {
    const bytes = this.readBytes(8);
    const view = new DataView(bytes.buffer, bytes.byteOffset, 8);
    return new Exact(view[read](0, little));
  };
}

// find returns the parsed text of a schema.
function find(folders, name) {
  for (const folder of folders) {
    const file = path.join(folder, name + '.ksy');
    if (fs.existsSync(file)) {
      return YAML.parse(fs.readFileSync(file, 'utf8'));
    }
  }
  throw new Error(`no schema ${name} in ${folders.join(', ')}`);
}

// compile compiles a schema and what it imports.
function compile(folders, name, language) {
  const importer = { importYaml: async (other) => find(folders, other) };
  return compiler.compile(language, find(folders, name), importer, false);
}

// load compiles a schema and returns its class.
async function load(folders, name) {
  const files = await compile(folders, name, 'javascript');
  const loaded = {};
  const load = (file) => {
    if (!loaded[file]) {
      loaded[file] = {};
      const resolve = (id) => (id.startsWith('./') ? load(path.basename(id) + '.js') : require(id));
      new Function('exports', 'require', files[file])(loaded[file], resolve);
    }
    return loaded[file];
  };
  return load(camel(name) + '.js')[camel(name)];
}

// camel is the name of a class for a name in a schema.
function camel(name) {
  return name.replace(/(^|_)([a-z0-9])/g, (_, __, c) => c.toUpperCase());
}

// typeIn finds a type within a class, by its name in the schema.
function typeIn(root, name) {
  if (!root[camel(name)]) {
    throw new Error(`no type ${name}`);
  }
  return root[camel(name)];
}

function number(x) {
  if (x instanceof Exact) {
    return x.big.toString();
  }
  return Number.isSafeInteger(x) ? String(x) : '"inexact"';
}

// json prints a value that was read from io, or from a part of it. Such a part
// must be read to its end: _left says how many bytes are not.
function json(x, io) {
  if (typeof x === 'number' || x instanceof Number) {
    return number(x);
  }
  if (typeof x === 'string' || typeof x === 'boolean') {
    return JSON.stringify(x);
  }
  if (x instanceof Uint8Array) {
    return JSON.stringify(Buffer.from(x).toString('hex'));
  }
  if (Array.isArray(x)) {
    return '[' + x.map((y) => json(y, io)).join(',') + ']';
  }
  const members = [];
  if (x._io !== io) {
    members.push(`"_left":${x._io.size - x._io.pos}`);
  }
  const instances = Object.entries(Object.getOwnPropertyDescriptors(Object.getPrototypeOf(x)));
  const names = Object.keys(x).concat(instances.filter(([, d]) => d.get).map(([name]) => name));
  for (const name of names) {
    const value = name.startsWith('_') ? undefined : x[name];
    if (value !== undefined && value !== null) {
      members.push(JSON.stringify(name) + ':' + json(value, x._io));
    }
  }
  return '{' + members.join(',') + '}';
}

// reason is the text of an error; the compiler throws other objects, too.
function reason(e) {
  return String(e && e.message ? e.message : e);
}

async function run(folders, job, classes) {
  if (job.languages) {
    const good = [];
    const bad = [];
    for (const language of compiler.languages) {
      try {
        await compile(folders, job.schema, language);
        good.push(language);
      } catch (e) {
        bad.push(language + ': ' + reason(e));
      }
    }
    return JSON.stringify({ languages: good, refused: bad });
  }
  if (!classes[job.schema]) {
    classes[job.schema] = await load(folders, job.schema);
  }
  let type = classes[job.schema];
  if (job.type) {
    type = typeIn(type, job.type);
  }
  const bytes = job.file ? fs.readFileSync(job.file) : Buffer.from(job.hex, 'hex');
  const exact = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  const stream = new KaitaiStream(exact);
  const value = new type(stream);
  const left = stream.size - stream.pos;
  return `{"left":${left},"value":${json(value, stream)}}`;
}

async function main() {
  const request = JSON.parse(fs.readFileSync(0, 'utf8'));
  const classes = {};
  const out = [];
  for (const job of request.jobs) {
    try {
      out.push(await run(request.folders, job, classes));
    } catch (e) {
      out.push(JSON.stringify({ error: reason(e) }));
    }
  }
  process.stdout.write('[' + out.join(',\n') + ']\n');
}

main();
