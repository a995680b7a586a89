// Writes tests/files/hostile: one tiny file per rule of the formats, and expected.json with the answer to each. Here
// safetensors and their index; GGUF in hostile_gguf.mjs, ONNX in hostile_onnx.mjs.
//   node tests/files/make_hostile.mjs
// expected.json: [{file, ok, code?, message_contains?, where_contains?, tensors?, unmapped?, missing_file?, why}]
//   ok true:  `tensors` = names in order of offset (files) or of the weight_map (folders: the index file is named).
//   ok false: `code` is the error's; message and where contain the given texts. `missing_file`: that shard does not exist.
// The rules and their numbers are those of the safetensors crate's reader (checks 1-14), with its accepted oddities.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ggufCases } from './hostile_gguf.mjs';
import { onnxCases } from './hostile_onnx.mjs';

const folder = join(dirname(fileURLToPath(import.meta.url)), 'hostile');
const expected = [];

/** File bytes: length field, header (string or bytes), `data` bytes of zeros. */
function file(header, data = 0, length = undefined) {
  const text = Buffer.from(header);
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(length ?? text.length));
  return Buffer.concat([size, text, Buffer.alloc(data)]);
}

/** Header text of one tensor; extra text goes behind its fields. */
function tensor(name, dtype, shape, begin, end, extra = '') {
  const dims = Array.isArray(shape) ? `[${shape.join(',')}]` : shape;
  return `${JSON.stringify(name)}:{"dtype":"${dtype}","shape":${dims},"data_offsets":[${begin},${end}]${extra}}`;
}

function write(name, bytes) {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, bytes);
}

function good(name, bytes, tensors, why) {
  write(`${name}.safetensors`, bytes);
  expected.push({ file: `${name}.safetensors`, ok: true, tensors, why });
}

function bad(name, bytes, code, message, where, why) {
  write(`${name}.safetensors`, bytes);
  expected.push({ file: `${name}.safetensors`, ok: false, code, message_contains: message, where_contains: where, why });
}

const invalid = 'file-invalid';
const one = (fields) => `{"w":{${fields}}}`;
const dtype = '"dtype":"U8"';
const shape = '"shape":[2]';
const offsets = '"data_offsets":[0,2]';
const huge = '4294967296';

rmSync(folder, { recursive: true, force: true });

// 1 · the file has at least 8 bytes
bad('01-empty', Buffer.alloc(0), 'file-truncated', 'has 0 bytes', 'byte 0', 'no bytes at all');
bad('01-seven-bytes', Buffer.alloc(7), 'file-truncated', 'has 7 bytes', 'byte 0', 'shorter than the length field');

// 2 · the header length is at most 100,000,000, judged before anything is allocated
bad('02-length-over-limit', file('{}', 0, 100000001), 'file-too-large', '100000001', 'byte 0', 'one byte over the limit');
bad('02-length-2-63', file('{}', 0, 2n ** 63n), 'file-too-large', '9223372036854775808', 'byte 0', 'negative when signed');
bad('02-length-2-64', file('{}', 0, 2n ** 64n - 1n), 'file-too-large', '18446744073709551615', 'byte 0', 'N + 8 wraps');

// 3 · the header lies inside the file
bad('03-length-at-limit', file('{}', 0, 100000000), 'file-truncated', 'only 2 bytes follow', 'byte 0', 'allowed, not there');
bad('03-header-one-byte-short', file('{}', 0, 3), 'file-truncated', 'only 2 bytes follow', 'byte 0', 'one byte missing');

// 4 · the header is UTF-8
bad('04-name-not-utf8', file(Buffer.from(`{${tensor('w\u00ff', 'U8', [2], 0, 2)}}`, 'latin1'), 2), invalid, 'not valid UTF-8', 'byte 11', 'latin-1 name');
bad('04-name-overlong', file(Buffer.from(`{${tensor('w\u00c0\u00af', 'U8', [2], 0, 2)}}`, 'latin1'), 2), invalid, 'not valid UTF-8', 'byte 11', 'overlong slash');
bad('04-raw-surrogate', file(Buffer.from(`{${tensor('\u00ed\u00a0\u0080', 'U8', [2], 0, 2)}}`, 'latin1'), 2), invalid, 'not valid UTF-8', 'byte 10', 'CESU-8 surrogate');
bad('04-byte-order-mark', file('\ufeff{}'), invalid, 'byte 0xef', 'byte 8', 'a BOM is no JSON');
bad('04-utf16', file(Buffer.from('{}', 'utf16le')), invalid, 'expected', 'byte 9', 'UTF-16 header');

// 5 · the header is one JSON object, with JSON whitespace around it at most
bad('05-header-empty', file(''), invalid, 'the end of the text', 'byte 8', 'header of length 0');
bad('05-not-json', file('hello world'), invalid, "found 'h'", 'byte 8', 'text');
bad('05-array', file('[]'), invalid, 'must be a JSON object, found an array', 'byte 8', 'top level is an array');
bad('05-string', file('"{}"'), invalid, 'must be a JSON object, found a string', 'byte', 'top level is a string');
bad('05-null', file('null'), invalid, 'must be a JSON object, found null', 'byte', 'top level is null');
bad('05-trailing-nul', file('{}\0'), invalid, 'byte 0x00', 'byte 10', 'padded with NUL instead of spaces');
bad('05-trailing-nul-object', file('{}\0{}'), invalid, 'byte 0x00', 'byte 10', 'second object behind NUL');
bad('05-trailing-brace', file('{}}'), invalid, 'expected nothing after', 'byte 10', 'one brace too many');
bad('05-not-closed', file('{"w":{'), invalid, 'the end of the text', 'byte 14', 'cut JSON');
bad('05-trailing-comma', file(`{${tensor('w', 'U8', [2], 0, 2)},}`, 2), invalid, 'expected a key in quotes', 'byte', 'JavaScript, not JSON');
bad('05-comment', file('{/**/}'), invalid, 'expected a key in quotes', 'byte 9', 'JavaScript, not JSON');
bad('05-single-quotes', file("{'w':1}"), invalid, 'expected a key in quotes', 'byte 9', 'Python, not JSON');
bad('05-nan', file(one(`${dtype},${shape},${offsets},"x":NaN`), 2), invalid, "found 'N'", 'byte', 'NaN is no JSON');
bad('05-number-too-large', file(one(`${dtype},${shape},${offsets},"x":1e999`), 2), invalid, 'too large', 'byte', 'beyond a double');
bad('05-nested-too-deep', file(one(`${dtype},${shape},${offsets},"x":${'['.repeat(200)}${']'.repeat(200)}`), 2), invalid, 'nested deeper than 128', 'byte', 'stack attack in an ignored field');
good('05-whitespace-around', file(` \t\r\n{${tensor('w', 'U8', [2], 0, 2)}}  \n\n `, 2), ['w'], 'padding is usual');

// 6 · __metadata__ is null or a map of strings, once
const metadata = (value) => file(`{"__metadata__":${value},${tensor('w', 'U8', [2], 0, 2)}}`, 2);
good('06-metadata-null', metadata('null'), ['w'], 'null counts as absent');
good('06-metadata-empty', metadata('{}'), ['w'], 'no entries');
good('06-metadata-strings', metadata('{"format":"pt","":"","__proto__":"x"}'), ['w'], 'any keys');
bad('06-metadata-number', metadata('{"format":1}'), invalid, "'format' must be a string, found an integer", '__metadata__', 'value is no string');
bad('06-metadata-nested', metadata('{"a":{"b":"c"}}'), invalid, "'a' must be a string, found an object", '__metadata__', 'value is an object');
bad('06-metadata-array', metadata('["a"]'), invalid, 'must be an object of strings or null, found an array', '__metadata__', 'not a map');
bad('06-metadata-string', metadata('"a"'), invalid, 'must be an object of strings or null, found a string', '__metadata__', 'not a map');
bad('06-metadata-twice', file(`{"__metadata__":{},${tensor('w', 'U8', [2], 0, 2)},"__metadata__":{}}`, 2), invalid, 'appears twice', '__metadata__', 'repeated key');
bad('06-metadata-twice-escaped', file(`{"__metadata__":null,"\\u005f_metadata__":null}`), invalid, 'appears twice', '__metadata__', 'repeated key, by escape');
bad('06-metadata-key-twice', metadata('{"a":"1","\\u0061":"2"}'), invalid, "'a' appears twice", '__metadata__', 'which one counts?');
bad('06-metadata-is-tensor', file(`{${tensor('__metadata__', 'U8', [2], 0, 2)}}`, 2), invalid, 'must be a string', '__metadata__', 'the reserved name as a tensor');

// 7 · dtype, shape and data_offsets, each once; other fields are ignored
bad('07-no-dtype', file(one(`${shape},${offsets}`), 2), invalid, 'dtype is missing', 'w', 'field missing');
bad('07-no-shape', file(one(`${dtype},${offsets}`), 2), invalid, 'shape is missing', 'w', 'field missing');
bad('07-no-offsets', file(one(`${dtype},${shape}`), 2), invalid, 'data_offsets is missing', 'w', 'field missing');
bad('07-dtype-twice', file(one(`${dtype},${shape},${offsets},${dtype}`), 2), invalid, 'dtype appears twice', 'w', 'repeated field');
bad('07-shape-twice', file(one(`${dtype},${shape},"sh\\u0061pe":[2],${offsets}`), 2), invalid, 'shape appears twice', 'w', 'repeated field, by escape');
bad('07-offsets-twice', file(one(`${dtype},${offsets},${shape},${offsets}`), 2), invalid, 'data_offsets appears twice', 'w', 'repeated field');
bad('07-tensor-string', file('{"w":"U8"}', 2), invalid, 'must be an object with dtype', 'w', 'not an object');
bad('07-tensor-null', file('{"w":null}'), invalid, 'found null', 'w', 'not an object');
good('07-extra-fields', file(one(`"a":{"dtype":"F64","x":[{}]},${dtype},"b":[[1.5],null],${shape},"c":-1e3,${offsets},"a":0`), 2), ['w'], 'unknown fields are ignored, whatever they hold');
good('07-tensor-array', file('{"w":["U8",[2],[0,2]]}', 2), ['w'], 'the crate reads a struct from an array too');
bad('07-tensor-array-short', file('{"w":["U8",[2]]}', 2), invalid, 'data_offsets is missing', 'w', 'two items');
bad('07-tensor-array-long', file('{"w":["U8",[2],[0,2],0]}', 2), invalid, 'has 3 items', 'w', 'four items');

// 8 · known dtype, shape of unsigned integers, two unsigned offsets
bad('08-dtype-unknown', file(`{${tensor('w', 'I4', [4], 0, 2)}}`, 2), 'dtype-unsupported', "'I4'", 'w', 'no such dtype');
bad('08-dtype-lower-case', file(`{${tensor('w', 'u8', [2], 0, 2)}}`, 2), 'dtype-unsupported', "'u8'", 'w', 'names are case-sensitive');
bad('08-dtype-number', file(one(`"dtype":8,${shape},${offsets}`), 2), invalid, 'dtype must be a string, found an integer', 'w', 'wrong type');
bad('08-shape-negative', file(`{${tensor('w', 'U8', [-1], 0, 2)}}`, 2), invalid, 'shape must hold integers from 0 to 2^64 - 1, found -1', 'w', 'negative');
bad('08-shape-minus-zero', file(`{${tensor('w', 'U8', '[-0]', 0, 0)}}`), invalid, 'found -0', 'w', 'the crate sees a float');
bad('08-shape-real', file(`{${tensor('w', 'U8', '[2.0]', 0, 2)}}`, 2), invalid, 'found a real number', 'w', 'whole, but a float');
bad('08-shape-exponent', file(`{${tensor('w', 'U8', '[2e0]', 0, 2)}}`, 2), invalid, 'found a real number', 'w', 'whole, but a float');
bad('08-shape-2-64', file(`{${tensor('w', 'U8', '[0,18446744073709551616]', 0, 0)}}`), invalid, 'found a real number', 'w', 'does not fit 64 bits');
bad('08-shape-string', file(`{${tensor('w', 'U8', '["2"]', 0, 2)}}`, 2), invalid, 'found a string', 'w', 'wrong type');
bad('08-shape-null', file(`{${tensor('w', 'U8', 'null', 0, 2)}}`, 2), invalid, 'shape must be an array of integers, found null', 'w', 'wrong type');
bad('08-shape-nested', file(`{${tensor('w', 'U8', '[[2]]', 0, 2)}}`, 2), invalid, 'found an array', 'w', 'wrong type');
bad('08-shape-object', file(`{${tensor('w', 'U8', '{"0":2}', 0, 2)}}`, 2), invalid, 'found an object', 'w', 'wrong type');
bad('08-rank-256', file(`{${tensor('w', 'U8', new Array(256).fill(1), 0, 1)}}`, 1), invalid, 'more than 255 dimensions', 'w', 'our limit, against memory growth');
bad('08-offsets-one', file(one(`${dtype},${shape},"data_offsets":[0]`), 2), invalid, 'must have 2 items, found 1', 'w', 'too few');
bad('08-offsets-none', file(one(`${dtype},${shape},"data_offsets":[]`), 2), invalid, 'must have 2 items, found 0', 'w', 'too few');
bad('08-offsets-three', file(one(`${dtype},${shape},"data_offsets":[0,2,2]`), 2), invalid, 'must have 2 items, found more', 'w', 'too many');
bad('08-offsets-negative', file(`{${tensor('w', 'U8', [2], -2, 0)}}`, 2), invalid, 'data_offsets must hold integers', 'w', 'negative');
bad('08-offsets-real', file(`{${tensor('w', 'U8', [2], 0, '2.0')}}`, 2), invalid, 'found a real number', 'w', 'whole, but a float');
bad('08-offsets-string', file(`{${tensor('w', 'U8', [2], 0, '"2"')}}`, 2), invalid, 'found a string', 'w', 'wrong type');

// 9 · no lone surrogate escapes
bad('09-lone-high-surrogate', file('{"\\ud800":1}'), invalid, 'lone surrogate', 'byte', 'in a name');
bad('09-lone-low-surrogate', file('{"\\udc00":1}'), invalid, 'lone surrogate', 'byte', 'in a name');
bad('09-swapped-surrogates', metadata('{"a":"\\udc00\\ud800"}'), invalid, 'lone surrogate', 'byte', 'in metadata');
good('09-surrogate-pair', file(`{"\\ud83d\\ude00":{${dtype},${shape},${offsets}}}`, 2), ['\u{1f600}'], 'a pair is a character');

// 10 · by offset, tensors tile the data: no hole, no overlap, no sharing, end not before begin
bad('10-first-not-at-zero', file(`{${tensor('w', 'U8', [2], 2, 4)}}`, 4), invalid, '[2, 4) must begin at 0', 'w', 'hole in front');
bad('10-hole', file(`{${tensor('a', 'U8', [2], 0, 2)},${tensor('b', 'U8', [2], 3, 5)}}`, 5), invalid, '[3, 5) must begin at 2', 'b', 'a byte nobody owns');
bad('10-overlap', file(`{${tensor('a', 'U8', [2], 0, 2)},${tensor('b', 'U8', [2], 1, 3)}}`, 3), invalid, '[1, 3) must begin at 2', 'b', 'a byte with two owners');
bad('10-shared-range', file(`{${tensor('a', 'U8', [2], 0, 2)},${tensor('b', 'U8', [2], 0, 2)}}`, 2), invalid, '[0, 2) must begin at 2', 'b', 'one range under two names');
bad('10-many-on-one-range', file(`{${Array.from({ length: 40 }, (_, i) => tensor(`t${i}`, 'U8', [2], 0, 2)).join()}}`, 2), invalid, 'must begin at 2', 't', 'JSON attack: small file, much memory');
bad('10-end-before-begin', file(`{${tensor('a', 'U8', [2], 0, 2)},${tensor('b', 'U8', [2], 2, 0)}}`, 2), invalid, 'end before they begin', 'b', 'negative size');
bad('10-offset-2-64', file(`{${tensor('a', 'U8', [2], 0, 2)},${tensor('b', 'U8', [2], '18446744073709551615', 1)}}`, 2), invalid, '[18446744073709551615, 1)', 'b', 'end - begin wraps to 2');
good('10-not-in-file-order', file(`{${tensor('b', 'U8', [2], 2, 4)},${tensor('a', 'U8', [2], 0, 2)}}`, 4), ['a', 'b'], 'the header may list tensors in any order');

// 11 · the size in bits does not overflow 64 bits, from left to right
bad('11-shape-overflow', file(`{${tensor('w', 'U8', [huge, huge], 0, 0)}}`), invalid, 'exceeds 2^64 - 1', 'w', '2^64 elements wrap to 0');
bad('11-bits-overflow', file(`{${tensor('w', 'U8', ['2305843009213693952'], 0, 0)}}`), invalid, 'exceeds 2^64 - 1', 'w', '2^61 bytes are 2^64 bits');
bad('11-overflow-then-zero', file(`{${tensor('w', 'U8', [huge, huge, 0], 0, 0)}}`), invalid, 'exceeds 2^64 - 1', 'w', 'overflows before the zero');
good('11-zero-then-huge', file(`{${tensor('w', 'F64', [0, huge, huge], 0, 0)}}`), ['w'], 'nothing overflows');

// 12 · sub-byte tensors fill whole bytes
bad('12-f4-odd', file(`{${tensor('w', 'F4', [3], 0, 1)}}`, 1), invalid, '12 bits of F4', 'w', 'half a byte left');
bad('12-f6-of-two', file(`{${tensor('w', 'F6_E2M3', [2], 0, 1)}}`, 1), invalid, '12 bits of F6_E2M3', 'w', 'not a multiple of four');
good('12-sub-byte', file(`{${tensor('a', 'F4', [3, 2], 0, 3)},${tensor('b', 'F6_E3M2', [4], 3, 6)}}`, 6), ['a', 'b'], 'whole bytes');

// 13 · the range has the size of dtype and shape
bad('13-range-too-long', file(`{${tensor('w', 'U8', [2], 0, 3)}}`, 3), invalid, 'hold 3 bytes, but dtype and shape need 2', 'w', 'one byte more');
bad('13-range-too-short', file(`{${tensor('w', 'F32', [2], 0, 7)}}`, 7), invalid, 'hold 7 bytes, but dtype and shape need 8', 'w', 'one byte less');
bad('13-range-empty', file(`{${tensor('w', 'F32', [1], 0, 0)}}`), invalid, 'hold 0 bytes, but dtype and shape need 4', 'w', 'no bytes');
bad('13-scalar-of-nothing', file(`{${tensor('w', 'F32', [], 0, 0)}}`), invalid, 'hold 0 bytes, but dtype and shape need 4', 'w', 'a scalar has one element');

// 14 · the tensors end where the file ends
bad('14-trailing-byte', file(`{${tensor('w', 'U8', [2], 0, 2)}}`, 3), invalid, 'has 3 bytes of data, the tensors cover only 2', '', 'polyglot');
bad('14-missing-byte', file(`{${tensor('w', 'U8', [2], 0, 2)}}`, 1), 'file-truncated', 'need 2 bytes of data, but the file has 1', 'w', 'cut file');
bad('14-no-data', file(`{${tensor('w', 'U8', [2], 0, 2)}}`), 'file-truncated', 'need 2 bytes of data, but the file has 0', 'w', 'header only');
bad('14-data-without-tensors', file('{}', 1), invalid, 'has 1 bytes of data, the tensors cover only 0', '', 'nobody owns the byte');
bad('14-beyond-2-53', file(`{${tensor('w', 'U8', ['1152921504606846976'], 0, '1152921504606846976')}}`), 'file-truncated', 'need 1152921504606846976 bytes', 'w', 'offsets near the top of 64 bits');

// duplicate names: forbidden by the format's documentation, where some readers keep the first and some the last
bad('15-name-twice', file(`{${tensor('a', 'U8', [2], 0, 2)},${tensor('a', 'U8', [2], 2, 4)}}`, 4), 'tensor-duplicate', 'appears twice', 'a', 'parser differential');
bad('15-name-twice-escaped', file(`{${tensor('a', 'U8', [2], 0, 2)},"\\u0061":["U8",[2],[2,4]]}`, 4), 'tensor-duplicate', 'appears twice', 'a', 'equal after unescaping');
bad('15-empty-tensor-twice', file(`{${tensor('a', 'U8', [0], 0, 0)},${tensor('a', 'U8', [0], 0, 0)}}`), 'tensor-duplicate', 'appears twice', 'a', 'tiles, still twice');
bad('15-long-name-twice', file(`{${tensor('n'.repeat(999), 'U8', [0], 0, 0)},${tensor('n'.repeat(999), 'U8', [0], 0, 0)}}`), 'tensor-duplicate', 'appears twice', 'nn…', 'errors show the first 200 bytes');

// accepted on purpose
good('16-no-tensors', file('{}'), [], 'an empty model');
good('16-scalar', file(`{${tensor('w', 'F32', [], 0, 4)}}`, 4), ['w'], 'no dimensions, one element');
good('16-zero-sized', file(`{${tensor('w', 'F32', [0], 0, 0)}}`), ['w'], 'no elements');
good('16-zero-sized-between', file(`{${tensor('a', 'U8', [2], 0, 2)},${tensor('b', 'F32', [3, 0], 2, 2)},${tensor('c', 'U8', [2], 2, 4)}}`, 4), ['a', 'b', 'c'], 'an empty range between two');
good('16-zero-sized-several', file(`{${tensor('z', 'U8', [0], 0, 0)},${tensor('y', 'U8', [2], 0, 2)},${tensor('x', 'U8', [0], 0, 0)}}`, 2), ['x', 'z', 'y'], 'equal empty ranges, by name');
good('16-empty-name', file(`{${tensor('', 'U8', [2], 0, 2)}}`, 2), [''], 'any string is a name');
good('16-proto-name', file(`{"__proto__":{${dtype},${shape},${offsets}},${tensor('constructor', 'U8', [1], 2, 3)}}`, 3), ['__proto__', 'constructor'], 'trap for plain JavaScript objects');
good('16-path-name', file(`{${tensor('../../etc/passwd', 'U8', [2], 0, 2)}}`, 2), ['../../etc/passwd'], 'a name is no path');
good('16-nul-name', file(`{"a\\u0000b":{${dtype},${shape},${offsets}}}`, 2), ['a\0b'], 'any string is a name');
good('16-unaligned', file(`{${tensor('a', 'U8', [1], 0, 1)},${tensor('b', 'F64', [1], 1, 9)}} `, 9), ['a', 'b'], 'nothing is aligned');
good('16-older-dtype-names', file(`{${tensor('a', 'FP4', [2], 0, 1)},${tensor('b', 'E8M0', [1], 1, 2)}}`, 2), ['a', 'b'], 'aliases, on read only');

// sharded models
const shardA = file(`{${tensor('a', 'U8', [2], 0, 2)}}`, 2);
const shardB = file(`{${tensor('b', 'U8', [3], 0, 3)}}`, 3);
const index = (map) => `{"metadata":{"total_size":5},"weight_map":${typeof map === 'string' ? map : JSON.stringify(map)}}\n`;

function shards(name, text, files, answer) {
  const path = `${name}/model.safetensors.index.json`;
  write(path, text);
  for (const [file, bytes] of Object.entries(files)) write(`${name}/${file}`, bytes);
  expected.push({ file: path, ...answer });
}
const fail = (code, message, where, why) => ({ ok: false, code, message_contains: message, where_contains: where, why });
const both = { '1.safetensors': shardA, '2.safetensors': shardB };
const agree = { a: '1.safetensors', b: '2.safetensors' };

shards('20-shards', index(agree), both, { ok: true, tensors: ['a', 'b'], unmapped: [], why: 'index and files agree' });
shards('20-shards-unmapped', index({ b: '2.safetensors' }), { '2.safetensors': file(`{${tensor('b', 'U8', [3], 0, 3)},${tensor('c', 'U8', [1], 3, 4)}}`, 4) }, { ok: true, tensors: ['b'], unmapped: ['c'], why: 'a tensor that the index forgot' });
shards('20-shards-no-metadata', `{"weight_map":{"a":"1.safetensors"},"x":[{"weight_map":1}]}`, { '1.safetensors': shardA }, { ok: true, tensors: ['a'], unmapped: [], why: 'only weight_map is needed' });
shards('21-shard-missing', index(agree), { '1.safetensors': shardA }, { ok: false, missing_file: '2.safetensors', why: 'a named shard does not exist' });
shards('21-shard-broken', index(agree), { '1.safetensors': shardA, '2.safetensors': shardB.subarray(0, shardB.length - 1) }, fail('file-truncated', 'need 3 bytes', 'b', 'a shard is cut'));
shards('21-tensor-not-in-shard', index({ ...agree, c: '2.safetensors' }), both, fail('tensor-missing', 'which does not hold it', 'c', 'the index names a tensor that is nowhere'));
shards('21-tensor-in-other-shard', index({ a: '2.safetensors', b: '1.safetensors' }), both, fail('tensor-missing', 'but it is in 1.safetensors', 'a', 'the index confuses two files'));
shards('21-name-in-two-shards', index(agree), { '1.safetensors': shardA, '2.safetensors': file(`{${tensor('a', 'U8', [1], 0, 1)},${tensor('b', 'U8', [3], 1, 4)}}`, 4) }, fail('tensor-duplicate', 'in 1.safetensors and in 2.safetensors', 'a', 'two files hold one name'));
shards('21-name-mapped-twice', index('{"a":"1.safetensors","\\u0061":"2.safetensors"}'), both, fail('tensor-duplicate', 'appears twice in the weight_map', 'a', 'repeated key, by escape'));

const plain = 'not a plain file name';
const escape = (name, file, why) => shards(name, index({ a: file }), {}, fail(invalid, plain, 'a', why));
escape('22-parent-folder', '../20-shards/1.safetensors', 'leaves the folder');
escape('22-sub-folder', 'sub/1.safetensors', 'a folder');
escape('22-absolute', '/etc/passwd', 'an absolute path');
escape('22-backslash', '..\\1.safetensors', 'a path on Windows');
escape('22-drive', 'C:1.safetensors', 'a drive letter');
escape('22-url', 'http:x.safetensors', 'a URL scheme');
escape('22-dots', '..', 'the folder above');
escape('22-dot', '.', 'the folder itself');
escape('22-no-name', '', 'an empty name');
escape('22-nul', '1.safetensors\0.png', 'a NUL cuts the name in C');
escape('22-too-long', `${'x'.repeat(256)}`, 'longer than file systems allow');

const text = (name, content, code, message, where, why) => shards(name, content, {}, fail(code, message, where, why));
text('23-not-json', 'weight_map', 'json-invalid', "found 'w'", 'byte 0', 'text');
text('23-array', '[]', invalid, 'must be a JSON object, found an array', 'byte 0', 'not an object');
text('23-no-weight-map', '{"metadata":{"total_size":0}}', invalid, 'is missing', 'weight_map', 'field missing');
text('23-weight-map-twice', '{"weight_map":{},"weight_map":{}}', invalid, 'appears twice', 'weight_map', 'repeated field');
text('23-weight-map-array', index('["a"]'), invalid, 'must be an object of tensor names', 'weight_map', 'wrong type');
text('23-file-number', index({ a: 1 }), invalid, 'must be a string, found an integer', 'a', 'wrong type');
text('23-file-object', index('{"a":{"b":"1.safetensors"}}'), invalid, 'must be a string, found an object', 'a', 'wrong type');

for (const { file: name, bytes, files = {}, answer } of [...ggufCases, ...onnxCases]) {
  write(name, bytes);
  for (const [other, content] of Object.entries(files)) write(other, content);
  expected.push({ file: name, ...answer });
}

writeFileSync(join(folder, 'expected.json'), `[\n${expected.map((entry) => `  ${JSON.stringify(entry)}`).join(',\n')}\n]\n`);
console.log(`${expected.length} cases in ${folder}`);
