// ONNX models, one wrong in every way that a reader must see: the wire format of protobuf, tensors whose data do not fit
// them, external data outside the folder. Field numbers: src/formats/onnx.h. Cases as in hostile_gguf.mjs, with `files`
// that stand beside the model.

function varint(value) {
  const bytes = [];
  for (let rest = BigInt.asUintN(64, BigInt(value)); ; rest >>= 7n) {
    bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
    if (rest <= 127n) return Buffer.from(bytes);
  }
}
const number = (field, value) => Buffer.concat([varint(field * 8), varint(value)]);
const bytes = (field, payload, length) => {
  const content = Buffer.isBuffer(payload) ? payload : Buffer.from(payload);
  return Buffer.concat([varint(field * 8 + 2), varint(length ?? content.length), content]);
};
const message = (...fields) => Buffer.concat(fields);

const floats = (count) => Buffer.alloc(4 * count);
const tensor = (name, shape, ...fields) =>
  message(...shape.map((size) => number(1, size)), number(2, 1), bytes(8, name), ...fields);
const raw = (name, shape) => tensor(name, shape, bytes(9, floats(shape.reduce((a, b) => a * b, 1))));
const node = (type, inputs, outputs, ...fields) =>
  message(...inputs.map((name) => bytes(1, name)), ...outputs.map((name) => bytes(2, name)), bytes(4, type), ...fields);
const matMul = bytes(1, node('MatMul', ['x', 'w'], ['y']));
const opset = bytes(8, message(bytes(1, ''), number(2, 17)));
/** What a graph says of an input or output: float32 [2, 2]. */
function value(field, name) {
  const shape = message(bytes(1, number(1, 2)), bytes(1, number(1, 2)));
  const type = message(bytes(1, message(number(1, 1), bytes(2, shape))));
  return bytes(field, message(bytes(1, name), bytes(2, type)));
}
const sides = message(bytes(2, 'g'), value(11, 'x'), value(12, 'y'));
const model = (...graph) => message(number(1, 8), bytes(7, message(...graph, sides)), opset);
const weight = (...fields) => model(matMul, bytes(5, tensor('w', [2, 2], ...fields)));
const typed = (type, ...fields) =>
  model(matMul, bytes(5, message(number(1, 2), number(1, 2), number(2, type), bytes(8, 'w'), ...fields)));
const entry = (key, value) => bytes(13, message(bytes(1, key), bytes(2, value)));
const external = (location, ...entries) => weight(entry('location', location), ...entries, number(14, 1));

export const onnxCases = [];
const add = (name, content, answer, files = {}) => onnxCases.push({ file: `${name}.onnx`, bytes: content, answer, files });
const bad = (name, content, code, message_contains, where_contains, why, files) =>
  add(name, content, { ok: false, code, message_contains, where_contains, why }, files);
const good = (name, content, tensors, why, files) => add(name, content, { ok: true, tensors, why }, files);
const invalid = 'file-invalid';
const cut = 'file-truncated';
const large = 'file-too-large';
const whole = model(matMul, bytes(5, raw('w', [2, 2])));

// 40 · the wire format
bad('40-varint-11-bytes', message(Buffer.from([8, ...new Array(10).fill(0xff), 1]), whole), invalid, 'a varint of more than 64 bits', 'byte 0', 'longer than any number');
bad('40-varint-cut', Buffer.concat([whole, Buffer.from([8, 0x80])]), cut, 'ends within a field', 'byte', 'no last byte');
bad('40-group', message(Buffer.from([0x0b]), whole), invalid, 'not a protobuf field', 'byte 0', 'wire type 3 has left the format');
bad('40-wire-type-7', message(number(1, 8), Buffer.from([0x3f]), whole), invalid, 'not a protobuf field', 'byte 2', 'never was');
bad('40-field-0', message(number(1, 8), Buffer.from([0x00, 1]), whole), invalid, 'not a protobuf field', 'byte 2', 'numbers begin at 1');
bad('40-field-beyond-file', message(number(1, 8), bytes(7, 'xx', 1000)), cut, 'a field has 1000 bytes, but the file has only 2 more', 'byte', 'cut graph');
bad('40-field-beyond-message', model(matMul, bytes(5, message(bytes(8, 'w', 90)))), invalid, 'in a message of which 1 are left', 'byte', 'reaches into its neighbour');
bad('40-length-2-64', message(number(1, 8), bytes(7, 'xx', 2n ** 64n - 1n)), cut, 'a field has 18446744073709551615 bytes', 'byte', 'offset + length wraps');
bad('40-graph-is-number', message(number(1, 8), number(7, 5), opset), invalid, 'expected a message here', 'byte', 'wrong wire type');
let nested = message(matMul, bytes(5, raw('w', [2, 2])));
for (let depth = 0; depth < 120; ++depth) nested = message(bytes(1, node('If', ['c'], ['y'], bytes(5, message(bytes(1, 'then_branch'), bytes(6, nested))))));
bad('40-nested-too-deep', message(number(1, 8), bytes(7, nested), opset), invalid, 'messages nest more than', 'byte', 'stack attack');

// 41 · the model
bad('41-no-graph', message(number(1, 8), opset), 'format-unknown', 'a graph; this file has none', '', 'nothing to read');
bad('41-graph-twice', message(number(1, 8), bytes(7, matMul), bytes(7, matMul), opset), invalid, 'the graph appears twice', 'byte', 'protobuf would merge them');
bad('41-no-opset', message(number(1, 8), bytes(7, message(matMul, bytes(5, raw('w', [2, 2]))))), invalid, 'which opsets', '', 'operators without meaning');
bad('41-opset-twice', message(number(1, 8), bytes(7, matMul), opset, bytes(8, message(bytes(1, ''), number(2, 12)))), invalid, 'two opset versions', 'byte', 'which one counts?');
bad('41-name-twice', model(matMul, bytes(5, raw('w', [2, 2])), bytes(5, raw('w', [2, 2]))), 'tensor-duplicate', 'defined twice', 'w', 'which one counts?');
bad('41-constant-graph', model(bytes(1, node('Constant', [], ['w'], bytes(5, message(bytes(1, 'g'), bytes(6, message(matMul))))))), invalid, 'a Constant holds a graph', 'byte', 'edits inside what is replaced');
bad('41-name-missing', model(matMul, bytes(5, raw('', [2, 2]))), invalid, 'a tensor has no name', 'byte', 'nobody can use it');
bad('41-name-not-utf8', model(matMul, bytes(5, raw(Buffer.from([0xff]), [2, 2]))), invalid, 'not valid UTF-8', 'byte', 'bytes');

// 42 · types and shapes of tensors
bad('42-type-0', typed(0, bytes(9, floats(4))), invalid, 'its element type is UNDEFINED', 'w', 'UNDEFINED');
add('42-type-99', typed(99, bytes(9, floats(4))), { ok: true, tensors: ['w'], opened: [], why: 'an element type of later releases is carried along' });
bad('42-dimension-negative', model(matMul, bytes(5, tensor('w', [-1, 2], bytes(9, floats(4))))), invalid, 'a dimension is negative', 'byte', 'symbolic dimensions are for inputs');
bad('42-product-wraps', model(matMul, bytes(5, tensor('w', [2n ** 32n, 2n ** 32n], bytes(9, floats(4))))), large, '2^55 elements', 'w', 'elements wrap to 0');
bad('42-rank-65', model(matMul, bytes(5, tensor('w', new Array(65).fill(1), bytes(9, floats(1))))), invalid, 'more than 64 dimensions', 'byte', 'our limit');
bad('42-dims-cut', model(matMul, bytes(5, message(bytes(1, Buffer.from([2, 0x82])), number(2, 1), bytes(8, 'w')))), invalid, 'dimensions are not varints', '', 'packed dims end in a varint');

// 43 · data that do not fit
bad('43-raw-short', weight(bytes(9, floats(3))), invalid, '12 bytes of data, but type and shape need 16', 'w', 'a number less');
bad('43-raw-long', weight(bytes(9, floats(5))), invalid, '20 bytes of data, but type and shape need 16', 'w', 'a number more');
bad('43-raw-twice', weight(bytes(9, floats(2)), bytes(9, floats(2))), invalid, 'raw data appear twice', 'w', 'which one counts?');
bad('43-raw-and-floats', weight(bytes(9, floats(4)), bytes(4, floats(4))), invalid, 'values in fields 9 and 4', 'w', 'one kind is allowed');
bad('43-floats-short', weight(bytes(4, floats(3))), invalid, '12 bytes of data, but type and shape need 16', 'w', 'a number less');
bad('43-no-data', weight(), invalid, '4 elements are declared, but none are stored', 'w', 'nothing there');
bad('43-wrong-field', weight(bytes(7, Buffer.from([1, 2, 3, 4]))), invalid, 'are not stored in field 7', 'w', 'int64_data of floats');
bad('43-varints-short', typed(10, bytes(5, Buffer.from([1, 2, 3]))), invalid, '3 bytes of varints cannot be 4 elements', 'w', 'float16 as int32_data');
bad('43-raw-text', typed(8, bytes(9, 'abcd')), invalid, 'texts cannot be raw data', 'w', 'texts have no bytes');
bad('43-segments', weight(bytes(3, message(number(1, 0))), bytes(9, floats(4))), invalid, 'in segments', 'w', 'no tool reads them');
bad('43-int4-odd', model(matMul, bytes(5, message(number(1, 3), number(2, 22), bytes(8, 'w'), bytes(9, Buffer.alloc(1))))), invalid, '1 bytes of data, but type and shape need 2', 'w', 'two to a byte, the last is padded');

// 44 · external data
const outside = "only files in the model's folder are read";
for (const [name, location, why] of [
  ['parent', '../secret', 'leaves the folder'],
  ['inner-parent', 'a/../../secret', 'leaves the folder on the way'],
  ['absolute', '/etc/passwd', 'an absolute path'],
  ['backslash', '..\\secret', 'a path on Windows'],
  ['drive', 'C:secret', 'a drive letter'],
  ['empty', '', 'the folder itself'],
  ['nul', 'data\0.png', 'a NUL cuts the name in C'],
])
  bad(`44-${name}`, external(location), invalid, outside, 'w', why);
bad('44-offset-no-number', external('data', entry('offset', '0x10')), invalid, 'is not a number', 'byte', 'hexadecimal');
bad('44-offset-negative', external('data', entry('offset', '-1')), invalid, 'is not a number', 'byte', 'before the file');
bad('44-offset-empty', external('data', entry('offset', '')), invalid, 'is empty', 'byte', 'nothing');
bad('44-offset-2-53', external('data', entry('offset', '9007199254740991')), large, 'end beyond byte 9007199254740991', 'w', 'JavaScript counts to 2^53');
bad('44-length-short', external('data', entry('length', '15')), invalid, 'external data has 15 bytes, but type and shape need 16', 'w', 'a byte less');
bad('44-own-and-external', weight(entry('location', 'data'), number(14, 1), bytes(9, floats(4))), invalid, 'both inline data and external data', 'w', 'which one counts?');
bad('44-not-external', weight(entry('location', 'data'), bytes(9, floats(4))), invalid, 'data_location is not EXTERNAL', 'w', 'which one counts?');
bad('44-data-cut', external('44-data-cut.data'), cut, 'end at byte 16 of', 'w', 'half the data', { '44-data-cut.data': Buffer.alloc(8) });
add('44-data-missing', external('44-is-not-there.data'), { ok: false, missing_file: '44-is-not-there.data', why: 'a named file does not exist' });

// accepted on purpose
good('45-raw', whole, ['w'], 'initializer of a MatMul');
good('45-unknown-fields', message(number(100, 1), bytes(99, 'abc'), whole), ['w'], 'newer versions have more fields');
good('45-external', external('45-external.data', entry('length', '16')), ['w'], 'data beside the model', { '45-external.data': Buffer.alloc(16) });
