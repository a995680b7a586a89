// An image for models that see.
import { crc32, deflateSync } from 'node:zlib';

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type), data]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}

/** A square of `side` pixels in red, green and blue, as the bytes of a PNG file. */
export function pngOf(side) {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  header.set([8, 2], 8); // 8 bits, three colors
  const row = (y) => [0, ...Array.from({ length: 3 * side }, (_, i) => (7 * i + 3 * y) % 256)];
  const rows = Buffer.from(Array.from({ length: side }, (_, y) => row(y)).flat());
  const magic = Buffer.from([0x89, ...Buffer.from('PNG\r\n\x1a\n')]);
  return Buffer.concat([
    magic,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}
