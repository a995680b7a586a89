// Writes tests/files/hostile_numpy: .npy and .npz files, one for each way in which they can lie, and expected.json with
// the answer to each, in the form of make_hostile.mjs. `inflated: true`: the directory and headers are right, and the
// answer comes with the inflated bytes, which the core does not see.
//   node tests/files/hostile_numpy.mjs
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { npyFile, npzFile } from '../node/sources/npy_file.mjs';

const folder = join(dirname(fileURLToPath(import.meta.url)), 'hostile_numpy');
const expected = [];
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);

const write = (file, bytes, answer) => {
  writeFileSync(join(folder, file), bytes);
  expected.push({ file, ...answer });
};
const good = (file, bytes, tensors, why, more = {}) => write(file, bytes, { ok: true, tensors, ...more, why });
const bad = (file, bytes, code, message, where, why, more = {}) =>
  write(file, bytes, { ok: false, code, message_contains: message, where_contains: where, ...more, why });
const invalid = 'file-invalid';

/** Any header text with any length field. */
function npy(text, data = 0, { version = [1, 0], length, magic = '\x93NUMPY' } = {}) {
  const field = Buffer.alloc(version[0] === 1 ? 2 : 4);
  field.writeUIntLE(length ?? Buffer.byteLength(text), 0, field.length);
  return Buffer.concat([Buffer.from(magic, 'latin1'), Buffer.from(version), field, Buffer.from(text), Buffer.alloc(data)]);
}
const dict = ({ descr = "'<f4'", order = 'False', shape = '(2,)', more = '' } = {}) =>
  `{'descr': ${descr}, 'fortran_order': ${order}, 'shape': ${shape}, ${more}}\n`;

// 1 · magic, version, header length
bad('01-magic-cut.npy', Buffer.from('\x93NUMPY', 'latin1'), 'file-truncated', 'the file has 6 bytes', 'byte 0', 'nothing but the magic');
bad('01-length-cut.npy', npy('').subarray(0, 9), 'file-truncated', 'its header begins at 10', 'byte 0', 'half a length field');
bad('02-version-0.npy', npy(dict(), 8, { version: [0, 0] }), invalid, 'version 0.0', 'byte 6', 'before the first version');
bad('02-version-4.npy', npy(dict(), 8, { version: [4, 0] }), invalid, 'version 4.0', 'byte 6', 'after the last one');
bad('02-version-1-1.npy', npy(dict(), 8, { version: [1, 1] }), invalid, 'version 1.1', 'byte 6', 'a minor version that is not');
good('02-version-2.npy', npy(dict(), 8, { version: [2, 0] }), ['02-version-2'], 'a length field of four bytes');
good('02-version-3.npy', npy(dict(), 8, { version: [3, 0] }), ['02-version-3'], 'UTF-8 text');
bad('03-length-over-limit.npy', npy(dict().padEnd(10001), 8), 'file-too-large', '10001', 'byte 8', 'one byte over the limit');
good('03-length-at-limit.npy', npy(dict().padEnd(10000), 8), ['03-length-at-limit'], 'NumPy reads as many');
bad('03-length-2-32.npy', npy(dict(), 8, { version: [2, 0], length: 0xffffffff }), 'file-too-large', '4294967295', 'byte 8', 'no allocation from it');
bad('03-length-beyond.npy', npy(dict(), 0, { length: 500 }), 'file-truncated', 'bytes follow', 'byte 8', 'the header is cut');
bad('03-length-zero.npy', npy('', 8), invalid, 'a dict', 'header', 'no header');
bad('03-length-into-dict.npy', npy(dict(), 8, { length: 20 }), invalid, 'a key', 'header', 'ends inside the dict');

// 2 · the dict: parsed, never evaluated
bad('04-not-utf8.npy', npy(Buffer.from([0x7b, 0xff, 0x7d]), 0), invalid, 'UTF-8', 'header', 'latin-1');
bad('04-expression.npy', npy(dict({ order: "__import__('os').system('x')" }), 8), invalid, 'True or False', 'header', 'code where a word belongs');
bad('04-expression-shape.npy', npy(dict({ shape: '(2**40,)' }), 8), invalid, 'a comma', 'header', 'arithmetic');
bad('04-generator.npy', npy(dict({ shape: '(x for x in ())' }), 8), invalid, 'a whole number', 'header', 'a generator');
bad('04-hex.npy', npy(dict({ shape: '(0x2,)' }), 8), invalid, 'a comma', 'header', 'Python would read 2');
bad('04-underscore.npy', npy(dict({ shape: '(1_0,)' }), 40), invalid, 'a comma', 'header', 'Python would read 10');
bad('04-long-suffix.npy', npy(dict({ shape: '(2L,)' }), 8), invalid, 'a comma', 'header', 'Python 2');
bad('04-escape.npy', npy(dict({ descr: "'\\x3cf4'" }), 8), invalid, 'a string', 'header', 'an escape in a string');
bad('04-comment.npy', npy(`${dict().trim()} # more`, 8), invalid, 'nothing more', 'header', 'text behind the dict');
bad('04-two-dicts.npy', npy(dict() + dict(), 8), invalid, 'nothing more', 'header', 'two answers');
bad('04-list.npy', npy(`[${dict().trim()}]`, 8), invalid, 'a dict', 'header', 'no dict');
bad('04-open.npy', npy("{'descr': '<f4'", 8), invalid, 'a comma or }', 'header', 'never closed');
bad('04-nul.npy', npy(`${dict()}\0`, 8), invalid, 'nothing more', 'header', 'a NUL behind the dict');
bad('05-key-missing.npy', npy("{'descr': '<f4', 'shape': (2,)}", 8), invalid, 'lacks one', 'header', 'no fortran_order');
bad('05-key-twice.npy', npy(dict({ more: "'shape': (4,)" }), 8), invalid, "key 'shape'", 'header', 'two shapes');
bad('05-key-unknown.npy', npy(dict({ more: "'x': 1" }), 8), invalid, "'x'", 'header', 'a fourth key');
bad('05-key-number.npy', npy("{1: '<f4'}", 8), invalid, 'a key', 'header', 'a key that is no string');
bad('05-empty.npy', npy('{}', 0), invalid, 'lacks one', 'header', 'no key');

// 3 · what an element is
bad('06-object.npy', npyFile('|O', [1], new Uint8Array(8)), 'dtype-unsupported', 'pickled Python', 'descr', 'a pickle follows');
bad('06-object-sized.npy', npyFile('|O8', [1], new Uint8Array(8)), 'dtype-unsupported', 'pickled Python', 'descr', 'the same, spelled otherwise');
bad('06-record.npy', npy(dict({ descr: "[('a', '<f4'), ('b', '|O')]" }), 24), 'dtype-unsupported', 'record', 'descr', 'fields, one of them pickled');
bad('06-sub-array.npy', npy(dict({ descr: "('<f4', (2,))" }), 16), 'dtype-unsupported', 'record', 'descr', 'elements with a shape');
bad('06-big-endian.npy', npyFile('>f4', [2], new Uint8Array(8)), 'dtype-unsupported', "astype('<f4')", 'descr', 'bytes the other way');
bad('06-text.npy', npyFile('<U3', [1], new Uint8Array(12)), 'dtype-unsupported', "'<U3'", 'descr', 'strings');
bad('06-date.npy', npyFile('<M8[ns]', [1], new Uint8Array(8)), 'dtype-unsupported', "'<M8[ns]'", 'descr', 'dates');
bad('06-void.npy', npyFile('|V2', [2], new Uint8Array(4)), 'dtype-unsupported', 'bfloat16', 'descr', 'bfloat16 as NumPy saves it');
bad('06-long-double.npy', npyFile('<f16', [1], new Uint8Array(16)), 'dtype-unsupported', "'<f16'", 'descr', 'a type of one machine');
bad('06-no-order.npy', npyFile('f4', [2], new Uint8Array(8)), 'dtype-unsupported', "'f4'", 'descr', 'no byte order');
bad('06-no-descr.npy', npyFile('', [2], new Uint8Array(8)), 'dtype-unsupported', "''", 'descr', 'an empty string');
bad('06-huge-descr.npy', npyFile(`<f${'4'.repeat(4000)}`, [2], new Uint8Array(8)), 'dtype-unsupported', "'<f444", 'descr', 'a message stays short');
bad('06-number.npy', npy(dict({ descr: '4' }), 8), invalid, 'a string', 'header', 'no string');
bad('07-fortran.npy', npyFile('<f4', [2, 2], new Uint8Array(16), { fortran: true }), 'dtype-unsupported', 'ascontiguousarray', 'fortran_order', 'columns lie before rows');
good('07-fortran-row.npy', npyFile('<f4', [1, 4], new Uint8Array(16), { fortran: true }), ['07-fortran-row.weight'], 'a row is the same either way');

// 4 · shape and bytes
bad('08-shape-negative.npy', npy(dict({ shape: '(-1,)' }), 8), invalid, 'whole number', 'header', 'numpy.reshape knows it');
bad('08-shape-real.npy', npy(dict({ shape: '(2.0,)' }), 8), invalid, 'a comma', 'header', 'not whole');
bad('08-shape-string.npy', npy(dict({ shape: "('2',)" }), 8), invalid, 'whole number', 'header', 'text');
bad('08-shape-list.npy', npy(dict({ shape: '[2]' }), 8), invalid, 'a tuple', 'header', 'no tuple');
bad('08-shape-no-comma.npy', npy(dict({ shape: '(2)' }), 8), invalid, 'a tuple', 'header', 'a number in brackets');
bad('08-shape-2-64.npy', npy(dict({ shape: '(18446744073709551616,)' }), 8), invalid, 'below 2^64', 'header', 'does not fit');
bad('08-shape-overflow.npy', npy(dict({ shape: '(4294967296, 4294967296)' }), 8), invalid, '2^64', 'shape', 'the product wraps to 0');
bad('08-shape-bytes-overflow.npy', npy(dict({ shape: '(9223372036854775807,)' }), 8), invalid, '2^64', 'shape', 'the bytes wrap');
bad('08-shape-65.npy', npy(dict({ shape: `(${'1,'.repeat(65)})` }), 4), invalid, '64 dimensions', 'header', 'more than NumPy has');
bad('08-data-missing.npy', npy(dict(), 7), 'file-truncated', 'need 8 bytes, but 7 follow', 'header', 'one byte short');
bad('08-data-more.npy', npy(dict(), 9), invalid, 'need 8 bytes, but 9 follow', 'header', 'one byte too many: another file');
good('08-empty.npy', npy(dict({ shape: '(0, 4294967296)' }), 0), ['08-empty.weight'], 'no elements');
good('08-scalar.npy', npy(dict({ shape: '()' }), 4), ['08-scalar'], 'no dimensions');

// 5 · archives: the directory
const matrix = npyFile('<f4', [4, 2], new Float32Array(8));
const vector = npyFile('<f4', [3], new Float32Array(3));
const one = (entry = {}, options = {}) => npzFile([{ name: 'a.weight.npy', bytes: matrix, ...entry }], options);
const two = (first = {}, second = {}) => npzFile([{ name: 'a.npy', bytes: matrix, ...first }, { name: 'b.npy', bytes: vector, ...second }]);
const ends = (end) => npzFile([{ name: 'a.npy', bytes: matrix }], { end });

good('10-good.npz', two(), ['a', 'b'], 'as numpy.savez makes it', { opened: ['a.weight', 'b'] });
good('10-zip64.npz', one({ wide: true }, { wide: true }), ['a.weight'], 'sizes of 64 bits');
good('10-comment.npz', one({}, { comment: 'PK\x05\x06 is no end' }), ['a.weight'], 'a comment that looks like the end');
bad('11-cut.npz', one().subarray(0, -30), 'file-truncated', 'no directory', '', 'copied in part');
bad('11-trailing.npz', Buffer.concat([one(), Buffer.from('x')]), 'file-truncated', 'no directory', '', 'something behind the end');
bad('11-no-entries.npz', npzFile([]), invalid, '0 entries', '', 'nothing inside');
bad('11-more-entries.npz', ends({ entries: 2 }), invalid, '2 entries', '', 'a count that the directory cannot hold');
bad('11-most-entries.npz', ends({ entries: 65534 }), invalid, '65534 entries', '', 'no allocation from the count');
bad('11-directory-long.npz', ends({ size: 1e9 }), invalid, 'does not end at byte', '', 'longer than the file');
bad('11-directory-elsewhere.npz', ends({ begin: 0 }), invalid, 'does not end at byte', '', 'bytes between it and its end');
bad('11-prefix.npz', Buffer.concat([Buffer.from('PK\x03\x04 is another file'), one()]), invalid, 'does not end at byte', '', 'offsets count from elsewhere: two archives in one');
{
  const wide = one({ wide: true }, { wide: true });
  const lie = (change) => {
    const bytes = Buffer.from(wide);
    change(bytes, bytes.length - 22 - 20, bytes.length - 22 - 20 - 56);
    return bytes;
  };
  bad('12-zip64-locator.npz', lie((bytes, locator) => bytes.writeBigUInt64LE(0n, locator + 8)), invalid, 'zip64', '', 'the locator points elsewhere');
  bad('12-zip64-entries.npz', lie((bytes, _, end) => (bytes.writeBigUInt64LE(2n ** 63n, end + 24), bytes.writeBigUInt64LE(2n ** 63n, end + 32))), invalid, 'entries', '', 'a count of 64 bits');
  bad('12-zip64-size.npz', lie((bytes, _, end) => bytes.writeBigUInt64LE(2n ** 64n - 1n, end + 40)), invalid, 'does not end at byte', '', 'the sum wraps');
  bad('12-zip64-disks.npz', lie((bytes, _, end) => bytes.writeUInt32LE(1, end + 16)), invalid, 'several disks', '', 'another disk');
}

// 6 · archives: names
const path = 'path out of the archive';
const slip = (file, name, why) => bad(file, one({ name }), invalid, path, '', why);
slip('13-parent.npz', '../a.npy', 'zip slip');
slip('13-parent-inside.npz', 'x/../../a.npy', 'from inside a folder');
slip('13-parent-last.npz', 'x/..', 'at the end');
slip('13-absolute.npz', '/etc/a.npy', 'an absolute path');
slip('13-drive.npz', 'C:a.npy', 'a drive letter');
slip('13-backslash.npz', '..\\a.npy', 'a path on Windows');
bad('13-nul.npz', one({ name: 'a.npy\0.npy' }), invalid, 'not UTF-8', '', 'a NUL cuts the name in C');
bad('13-no-name.npz', one({ name: '' }), 'format-unknown', 'is not a .npy entry', '', 'an empty name');
bad('13-only-ending.npz', one({ name: '.npy' }), 'format-unknown', 'is not a .npy entry', '.npy', 'nothing before the ending');
bad('13-pickle.npz', one({ name: 'archive/data.pkl' }), 'format-unknown', 'PyTorch', 'data.pkl', 'a PyTorch checkpoint: never run');
bad('13-twice.npz', two({}, { name: 'a.npy' }), 'tensor-duplicate', 'twice', 'a', 'two answers to one name');
good('13-proto.npz', one({ name: '__proto__.npy' }), ['__proto__'], 'an ordinary name', { opened: ['__proto__.weight'] });

// 7 · archives: entries that lie about sizes and places
bad('14-same-place.npz', two({}, { central: { at: 0 } }), invalid, 'next entry', '', 'two entries, one place');
bad('14-over-next.npz', two({ central: { packed: matrix.length + 9, bytes: matrix.length + 9 } }), invalid, 'next entry', 'a', 'goes on into the next');
bad('14-behind.npz', one({ central: { at: 99999999 } }), invalid, 'next entry', 'a', 'behind the directory');
bad('14-size-2-63.npz', one({ wide: true, central: { bytes: 2n ** 63n, packed: 2n ** 63n } }), invalid, 'next entry', 'a', 'the end wraps');
bad('14-sizes-differ.npz', two({ local: { packed: 1, bytes: 1 } }), invalid, 'differ in name, sizes or method', 'a', 'two headers, two sizes');
bad('14-names-differ.npz', one({ local: { name: 'b.weight.npy' } }), invalid, 'differ in name', 'a', 'two headers, two names');
bad('14-methods-differ.npz', one({ local: { method: 8 } }), invalid, 'differ in name', 'a', 'two headers, two methods');
bad('14-no-local.npz', one({ central: { at: 1 } }), invalid, '', '', 'no header where it should be');
bad('15-encrypted.npz', one({ local: { flags: 1 }, central: { flags: 1 } }), invalid, 'encrypted', 'a', 'a password is needed');
bad('15-method-14.npz', one({ local: { method: 14 }, central: { method: 14 } }), invalid, 'method 14', 'a', 'LZMA');
bad('15-stored-sizes.npz', one({ central: { bytes: 1e6 } }), invalid, 'cannot be', 'a', 'stored bytes that would grow');

// 8 · archives: deflated arrays
const bomb = Buffer.alloc(1 << 20);
const declared = (bytes) => ({ local: { bytes }, central: { bytes } });
bad('16-ratio.npz', one({ deflate: true, ...declared(4e9) }), invalid, 'cannot be', 'a', 'more than deflate can make of it');
bad('16-total.npz', npzFile([1, 2].map((n) => ({ name: `${n}.npy`, bytes: matrix, packed: Buffer.alloc(600_000), deflate: true, ...declared(600e6) }))), 'file-too-large', '', '', 'each may be, both together are too much');
bad('16-bomb.npz', one({ bytes: bomb, deflate: true, ...declared(2048) }), invalid, 'more than the 2048 bytes', '', 'declares less than comes out', { inflated: true });
bad('16-short.npz', one({ deflate: true, ...declared(matrix.length + 1) }), invalid, 'it declares', '', 'ends early', { inflated: true });
bad('16-no-stream.npz', one({ deflate: true, packed: Buffer.alloc(matrix.length, 255) }), invalid, 'cannot be inflated', '', 'no deflate stream', { inflated: true });
bad('16-checksum.npz', one({ deflate: true, local: { crc: 1 }, central: { crc: 1 } }), invalid, 'checksum', '', 'other bytes than were packed', { inflated: true });
bad('16-pickle-inside.npz', one({ bytes: npyFile('|O', [1], new Uint8Array(8)), deflate: true }), 'dtype-unsupported', 'pickled', '', 'a pickle, deflated', { inflated: true });
good('16-deflated.npz', one({ deflate: true }), ['a.weight'], 'as numpy.savez_compressed makes it');

// 9 · archives: what the entries hold
bad('17-text.npz', one({ bytes: Buffer.from('hello, this is text') }), invalid, 'does not begin as .npy', 'a', 'no array');
bad('17-object.npz', one({ bytes: npyFile('|O', [1], new Uint8Array(8)) }), 'dtype-unsupported', 'pickled', 'a', 'a pickle');
bad('17-data-short.npz', one({ bytes: matrix.subarray(0, -1) }), 'file-truncated', 'need 32 bytes', 'a', 'cut by one byte');
bad('17-data-long.npz', one({ bytes: Buffer.concat([matrix, Buffer.alloc(1)]) }), invalid, 'need 32 bytes', 'a', 'one byte too many');

writeFileSync(join(folder, 'expected.json'), `[\n${expected.map((entry) => `  ${JSON.stringify(entry)}`).join(',\n')}\n]\n`);
console.log(`${expected.length} cases in ${folder}`);
