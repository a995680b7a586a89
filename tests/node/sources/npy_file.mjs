// Files as numpy.save and numpy.savez make them, byte by byte.
import { crc32, deflateRawSync } from 'node:zlib';

/** `descr` as numpy spells it ("<f4"), `data` any view of the values. */
export function npyFile(descr, shape, data, { fortran = false } = {}) {
  const dims = shape.length === 1 ? `${shape[0]},` : shape.join(', ');
  const text = `{'descr': '${descr}', 'fortran_order': ${fortran ? 'True' : 'False'}, 'shape': (${dims}), }`;
  const header = Buffer.from(`${text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11)}\n`);
  const length = Buffer.alloc(2);
  length.writeUInt16LE(header.length);
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return Buffer.concat([Buffer.from('\x93NUMPY\x01\x00', 'latin1'), length, header, bytes]);
}

/** A record of little-endian fields: [bytes, value] each. */
function fields(...list) {
  return Buffer.concat(
    list.map(([width, value]) => {
      const field = Buffer.alloc(8);
      field.writeBigUInt64LE(BigInt(value));
      return field.subarray(0, width);
    }),
  );
}

/**
 * A zip archive. Each entry: {name, bytes, deflate?, wide?, local?, central?}; `wide` puts sizes into zip64 fields as
 * numpy does, `local` and `central` change fields of its two headers, for archives that lie.
 */
export function npzFile(entries, { wide = false, comment = '', end = {} } = {}) {
  const parts = [];
  const directory = [];
  let at = 0;
  for (const entry of entries) {
    const packed = entry.packed ?? (entry.deflate ? deflateRawSync(entry.bytes) : entry.bytes);
    const own = {
      flags: 0,
      method: entry.deflate ? 8 : 0,
      crc: crc32(entry.bytes),
      packed: packed.length,
      bytes: entry.bytes.length,
      name: entry.name,
      at,
    };
    const header = (signature, of, isCentral) => {
      const name = Buffer.from(of.name);
      const sizes = fields([8, of.bytes], [8, of.packed], ...(isCentral ? [[8, of.at]] : []));
      const extra = entry.wide ? Buffer.concat([fields([2, 1], [2, sizes.length]), sizes]) : Buffer.alloc(0);
      const narrow = (value) => [4, entry.wide ? 0xffffffff : value];
      return Buffer.concat([
        fields([4, signature], ...(isCentral ? [[2, 45]] : []), [2, 45], [2, of.flags], [2, of.method], [4, 0]),
        fields([4, of.crc], narrow(of.packed), narrow(of.bytes), [2, name.length], [2, extra.length]),
        ...(isCentral ? [fields([2, 0], [2, 0], [2, 0], [4, 0], narrow(of.at))] : []),
        name,
        extra,
      ]);
    };
    const local = header(0x04034b50, { ...own, ...entry.local }, false);
    directory.push(header(0x02014b50, { ...own, ...entry.central }, true));
    parts.push(local, packed);
    at += local.length + packed.length;
  }
  const size = Buffer.concat(directory).length;
  const last = { entries: entries.length, size, begin: at, ...end };
  if (wide) {
    const place = at + size;
    directory.push(
      fields([4, 0x06064b50], [8, 44], [2, 45], [2, 45], [4, 0], [4, 0], [8, last.entries], [8, last.entries]),
      fields([8, last.size], [8, last.begin], [4, 0x07064b50], [4, 0], [8, place], [4, 1]),
    );
    Object.assign(last, { entries: 0xffff, size: 0xffffffff, begin: 0xffffffff });
  }
  directory.push(
    fields([4, 0x06054b50], [2, 0], [2, 0], [2, last.entries], [2, last.entries], [4, last.size], [4, last.begin]),
    fields([2, comment.length]),
    Buffer.from(comment),
  );
  return Buffer.concat([...parts, ...directory]);
}
