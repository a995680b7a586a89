// GGUF files, one wrong in every way that a reader must see: checks of ggml's loader, and limits of Hugging Face's.
// Layout: src/formats/gguf.h. Cases: { file, bytes, and the answer as expected.json has it }.

const u32 = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(Number(value) >>> 0);
  return bytes;
};
const u64 = (value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)));
  return bytes;
};
const text = (value, length) => {
  const bytes = Buffer.isBuffer(value) ? value : Buffer.from(value);
  return Buffer.concat([u64(length ?? bytes.length), bytes]);
};
const types = { u8: 0, u32: 4, text: 8, array: 9, u64: 10 };
const key = (name, type, ...value) => Buffer.concat([text(name), u32(types[type] ?? type), ...value]);
const tensor = (name, dims, type = 0, offset = 0) =>
  Buffer.concat([text(name), u32(dims.length), ...dims.map(u64), u32(type), u64(offset)]);

/** `counts`: what the header says of tensors and keys, where that is not how many there are. */
function file({ magic = 'GGUF', version = 3, keys = [], tensors = [], data = 0, counts = [], alignment = 32 }) {
  const head = Buffer.concat([
    Buffer.from(magic),
    Buffer.isBuffer(version) ? version : u32(version),
    u64(counts[0] ?? tensors.length),
    u64(counts[1] ?? keys.length),
    ...keys,
    ...tensors,
  ]);
  const padding = data < 0 ? 0 : Math.ceil(head.length / alignment) * alignment - head.length;
  return Buffer.concat([head, Buffer.alloc(padding + Math.max(0, data))]);
}

export const ggufCases = [];
const bad = (name, bytes, code, message, where, why) =>
  ggufCases.push({
    file: `${name}.gguf`,
    bytes,
    answer: { ok: false, code, message_contains: message, where_contains: where, why },
  });
const good = (name, bytes, tensors, why) =>
  ggufCases.push({ file: `${name}.gguf`, bytes, answer: { ok: true, tensors, why } });
const invalid = 'file-invalid';
const cut = 'file-truncated';
const large = 'file-too-large';
const w = tensor('w', [4]);
const architecture = key('general.architecture', 'text', text('llama'));

// 30 · magic, version, byte order
bad('30-header-cut', Buffer.from('GGUF\x03\0\0\0'), cut, 'at least 24 bytes, but the file has 8', 'byte 0', 'no counts');
bad('30-version-1', file({ version: 1 }), invalid, 'GGUF version 1; versions 2 and 3 are read', 'byte 4', 'counts of 32 bits');
bad('30-version-4', file({ version: 4 }), invalid, 'GGUF version 4', 'byte 4', 'not known yet');
bad('30-version-0', file({ version: 0 }), invalid, 'GGUF version 0', 'byte 4', 'never was');
bad('30-big-endian', file({ version: Buffer.from([0, 0, 0, 3]) }), invalid, 'big-endian', 'byte 4', 'swapped bytes');

// 31 · counts that the file cannot hold, before anything is allocated
bad('31-tensors-negative', file({ counts: [-1, 0] }), invalid, 'a count is negative', 'byte 8', 'a small allocation in C');
bad('31-keys-negative', file({ counts: [0, -1] }), invalid, 'a count is negative', 'byte 16', 'a small allocation in C');
bad('31-tensors-2-40', file({ counts: [2n ** 40n, 0] }), large, 'a count of 1099511627776', 'byte 8', 'memory for an index');
bad('31-keys-2-40', file({ counts: [0, 2n ** 40n] }), large, 'a count of 1099511627776', 'byte 16', 'memory for an index');
bad('31-tensors-not-there', file({ counts: [1000, 0] }), cut, 'a count of 1000 does not fit', 'byte 8', 'more than bytes');
bad('31-keys-not-there', file({ counts: [0, 1000] }), cut, 'a count of 1000 does not fit', 'byte 16', 'more than bytes');

// 32 · keys and values
bad('32-key-empty', file({ keys: [key('', 'u8', Buffer.from([1])), architecture] }), invalid, 'a metadata key is empty', 'byte 24', 'no name');
bad('32-key-not-utf8', file({ keys: [key(Buffer.from([0xff, 0xfe]), 'u32', u32(1))] }), invalid, 'not valid UTF-8', 'byte 24', 'bytes');
bad('32-key-too-long', file({ keys: [Buffer.concat([u64(70_000), Buffer.alloc(70_020)])] }), large, 'a text of 70000 bytes; the limit is 65535', 'byte 24', 'longer than the format allows');
bad('32-key-beyond-file', file({ keys: [Buffer.concat([u64(60_000), Buffer.alloc(30)])] }), cut, 'a text of 60000 bytes', 'byte 24', 'runs over the end');
bad('32-key-length-2-64', file({ keys: [Buffer.concat([u64(2n ** 64n - 1n), Buffer.alloc(30)])] }), large, 'a text of 18446744073709551615 bytes', 'byte 24', 'length + 1 wraps');
bad('32-key-twice', file({ keys: [architecture, architecture] }), invalid, 'this metadata key appears twice', 'general.architecture', 'which one counts?');
bad('32-type-13', file({ keys: [key('a', 13, u64(0))] }), invalid, 'value type 13 does not exist', 'a', 'unknown');
bad('32-type-2-31', file({ keys: [key('a', 0x80000000, u64(0))] }), invalid, 'value type 2147483648', 'a', 'negative when signed');
bad('32-text-too-long', file({ keys: [key('a', 'text', u64(2n ** 30n + 1n))] }), large, 'the limit is 10485760', 'a', 'more than any text');
bad('32-text-beyond-file', file({ keys: [key('a', 'text', text('llama', 5000))] }), cut, 'a text of 5000 bytes', 'a', 'runs over the end');
bad('32-value-cut', file({ keys: [key('a', 'u64', u32(1))], data: -1 }), cut, 'needs 8 more bytes, but the file has 4', 'a', 'half a number');

// 33 · arrays
const array = (name, type, count, ...items) => key(name, 'array', u32(type), u64(count), ...items);
bad('33-array-of-arrays', file({ keys: [array('a', 9, 1, u64(0))] }), invalid, 'an array of arrays', 'a', 'nesting');
bad('33-array-type', file({ keys: [array('a', 99, 1, u64(0))] }), invalid, 'value type 99', 'a', 'unknown element');
bad('33-array-2-40', file({ keys: [array('a', 4, 2n ** 40n)] }), large, 'an array of 1099511627776 items', 'a', 'memory before bytes');
bad('33-array-wraps', file({ keys: [array('a', 10, 2n ** 61n)] }), large, 'an array of 2305843009213693952 items', 'a', 'count · 8 wraps to 0');
bad('33-array-beyond-file', file({ keys: [array('a', 4, 1000, u32(1))] }), cut, 'an array of 1000 items does not fit', 'a', 'runs over the end');
bad('33-array-of-texts-beyond-file', file({ keys: [array('a', 8, 500, text('x'))] }), cut, 'an array of 500 items', 'a', 'eight bytes each at least');

// 34 · general.alignment
const aligned = (type, ...value) => file({ keys: [key('general.alignment', type, ...value)], tensors: [w], data: 64 });
bad('34-alignment-0', aligned('u32', u32(0)), invalid, 'a power of two, found 0', 'general.alignment', 'division by zero');
bad('34-alignment-24', aligned('u32', u32(24)), invalid, 'a power of two, found 24', 'general.alignment', 'no power of two');
bad('34-alignment-u64', aligned('u64', u64(32)), invalid, 'must be a u32, found u64', 'general.alignment', 'another type');
bad('34-alignment-text', aligned('text', text('32')), invalid, 'must be a u32, found text', 'general.alignment', 'another type');
bad('34-alignment-2-31', aligned('u32', u32(2 ** 31)), cut, 'not all in the file', 'w', 'padding beyond the file');

// 35 · names, shapes and types of tensors
const one = (...args) => file({ tensors: [tensor(...args)], data: 64 });
bad('35-name-64', one('n'.repeat(64), [4]), large, 'this tensor name has 64 bytes; GGUF readers accept at most 63', 'nnnn', 'no room for a NUL');
bad('35-name-empty', one('', [4]), invalid, 'and not empty', 'byte 24', 'no name');
bad('35-name-nul', one('a\0b', [4]), invalid, 'without NUL', 'byte 24', 'cut in C');
bad('35-name-not-utf8', one(Buffer.from([0xc3, 0x28]), [4]), invalid, 'valid UTF-8', 'byte 24', 'bytes');
bad('35-name-twice', file({ tensors: [w, tensor('w', [4], 0, 32)], data: 64 }), 'tensor-duplicate', 'appears twice', 'w', 'which one counts?');
bad('35-rank-5', one('w', [1, 1, 1, 1, 1]), invalid, '5 dimensions; the limit is 4', 'w', 'more than ggml has');
bad('35-rank-2-32', file({ tensors: [Buffer.concat([text('w'), u32(2 ** 32 - 1), Buffer.alloc(64)])] }), invalid, '4294967295 dimensions', 'w', 'memory for dimensions');
bad('35-dimension-negative', one('w', [-1]), invalid, 'dimension 0 is not in 0 to 4294967296', 'w', 'negative');
bad('35-dimension-2-33', one('w', [2n ** 33n]), invalid, 'dimension 0 is not in', 'w', 'our limit');
bad('35-product-wraps', one('w', [2n ** 32n, 2n ** 32n]), large, '2^63 elements', 'w', 'elements wrap to 0');
bad('35-product-2-63', one('w', [2n ** 31n, 2n ** 31n, 2]), large, '2^63 elements', 'w', 'negative when signed');
bad('35-type-99', one('w', [4], 99), 'dtype-unsupported', 'tensor type 99', 'w', 'unknown');
bad('35-type-removed', one('w', [32], 4), 'dtype-unsupported', 'tensor type 4', 'w', 'Q4_2, block of size 0');
bad('35-type-negative', one('w', [4], 2 ** 32 - 1), 'dtype-unsupported', 'tensor type 4294967295', 'w', 'before the table');
bad('35-row-no-blocks', one('w', [33], 8), 'format-unsupported', 'rows of 33 elements are not a multiple of q8_0 blocks', 'w', 'Q8_0 has blocks of 32');

// 36 · where data lie
bad('36-offset-not-0', file({ tensors: [tensor('w', [4], 0, 32)], data: 64 }), invalid, 'data offset is 32, but the tensor before it ends at 0', 'w', 'hole in front');
bad('36-overlap', file({ tensors: [w, tensor('v', [4], 0, 0)], data: 64 }), invalid, 'data offset is 0, but the tensor before it ends at 32', 'v', 'a byte with two owners');
bad('36-hole', file({ tensors: [w, tensor('v', [4], 0, 64)], data: 96 }), invalid, 'data offset is 64', 'v', 'bytes that nobody owns');
bad('36-unaligned', file({ tensors: [w, tensor('v', [4], 0, 16)], data: 64 }), invalid, 'data offset is 16', 'v', 'not padded');
bad('36-data-cut', file({ tensors: [tensor('w', [64])], data: 100 }), cut, 'its 256 bytes from byte', 'w', 'half the data');
bad('36-no-data', file({ tensors: [w], data: -1 }), cut, 'not all in the file', 'w', 'header only');
bad('36-offset-2-64', file({ tensors: [w, tensor('v', [4], 0, -32)], data: 64 }), invalid, 'data offset is 18446744073709551584', 'v', 'offset + base wraps');

// accepted on purpose
good('37-no-tensors', file({ keys: [architecture] }), [], 'a vocabulary');
good('37-version-2', file({ version: 2, tensors: [w], data: 16 }), ['w'], 'the same layout');
good('37-trailing-bytes', file({ tensors: [w], data: 96 }), ['w'], 'ggml reads on');
good('37-two', file({ keys: [architecture], tensors: [w, tensor('v', [32, 2], 8, 32)], data: 128 }), ['w', 'v'], 'F32 and Q8_0');
good('37-alignment-64', file({ keys: [key('general.alignment', 'u32', u32(64))], tensors: [w, tensor('v', [1], 0, 64)], data: 128, alignment: 64 }), ['w', 'v'], 'another alignment');
good('37-zero-elements', file({ tensors: [tensor('e', [0]), w], data: 32 }), ['e', 'w'], 'nothing in it');
