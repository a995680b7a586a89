// Packing, differentially: every packing of the same codes against a bit-by-bit writer, and back to the codes.
// Input: 1. width and flags  2. columns  3. offset  4. codes, the rest.
#include <cstdint>
#include <cstring>
#include <vector>

#include "packing/packing.h"
#include "require.h"

using namespace wasmquant::packing;
using Bytes = std::vector<uint8_t>;

namespace {

// Reads back as: the low `bits` bits, sign-extended when signed.
uint8_t reduced(uint32_t code, uint32_t bits, bool is_signed) {
  const uint32_t mask = (1u << bits) - 1, value = code & mask;
  return static_cast<uint8_t>(is_signed && value >> (bits - 1) != 0 ? value | ~mask : value);
}

void put_bits(uint8_t* bytes, uint64_t at, uint32_t code, uint32_t bits) {
  for (uint32_t b = 0; b < bits; ++b)
    if (code >> b & 1) bytes[(at + b) / 8] = static_cast<uint8_t>(bytes[(at + b) / 8] | 1u << ((at + b) % 8));
}

void check_bit_stream(const Bytes& codes, uint32_t bits, bool is_signed) {
  Bytes packed(bit_stream_bytes(codes.size(), bits)), slow(packed.size(), 0), back(codes.size());
  for (size_t i = 0; i < codes.size(); ++i) put_bits(slow.data(), i * bits, codes[i], bits);
  pack_bits(codes, bits, packed.data());
  require(packed == slow);
  unpack_bits(packed, codes.size(), bits, is_signed, back.data());
  for (size_t i = 0; i < codes.size(); ++i) require(back[i] == reduced(codes[i], bits, is_signed));
  if (bits != 4) return;
  pack_nibbles(codes, packed.data());
  require(packed == slow);
  unpack_nibbles(packed, codes.size(), is_signed, back.data());
  for (size_t i = 0; i < codes.size(); ++i) require(back[i] == reduced(codes[i], 4, is_signed));
}

void check_words(const Bytes& codes, size_t columns, uint32_t bits, uint32_t offset, bool is_signed) {
  const size_t rows = codes.size() / columns, width = static_cast<size_t>(words_per_row(columns, bits));
  std::vector<uint32_t> packed(rows * width), slow(rows * width, 0);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c)
      put_bits(reinterpret_cast<uint8_t*>(slow.data() + r * width), c * bits, codes[r * columns + c] + offset, bits);
  pack_words(codes.data(), rows, columns, bits, offset, packed.data());
  require(packed == slow);
  Bytes back(rows * columns);
  unpack_words(packed.data(), rows, columns, bits, offset, is_signed, back.data());
  for (size_t i = 0; i < back.size(); ++i) require(back[i] == reduced(codes[i], bits, is_signed));
}

void check_nibble_words(const Bytes& codes, size_t columns, bool is_signed) {
  constexpr uint32_t kReorder[8] = {0, 2, 4, 6, 1, 3, 5, 7};
  const size_t rows = codes.size() / columns, width = static_cast<size_t>(words_per_row(columns, 4));
  for (const WordOrder order : {WordOrder::order, WordOrder::reorder}) {
    std::vector<uint32_t> packed(rows * width);
    pack_nibble_words(codes.data(), rows, columns, order, packed.data());
    for (size_t i = 0; i < packed.size() * 8; ++i) {
      const size_t k = i % 8, column = i / 8 % width * 8 + (order == WordOrder::order ? k : kReorder[k]);
      const uint32_t expected = column < columns ? codes[i / 8 / width * columns + column] & 0xFu : 0;
      require((packed[i / 8] >> (4 * k) & 0xF) == expected);
    }
    Bytes back(rows * columns);
    unpack_nibble_words(packed.data(), rows, columns, order, is_signed, back.data());
    for (size_t i = 0; i < back.size(); ++i) require(back[i] == reduced(codes[i], 4, is_signed));
  }
}

void check_transpose(const Bytes& codes, size_t columns) {
  const size_t rows = codes.size() / columns;
  Bytes in(codes.begin(), codes.begin() + static_cast<std::ptrdiff_t>(rows * columns)), transposed(in.size()),
      back(in.size());
  transpose_bytes(in.data(), rows, columns, transposed.data());
  for (size_t i = 0; i < in.size(); ++i) require(transposed[i % columns * rows + i / columns] == in[i]);
  transpose_bytes(transposed.data(), columns, rows, back.data());
  require(back == in);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const uint32_t bits = (data[0] & 7) + 1;
  const bool is_signed = data[0] & 8;
  const size_t columns = data[1] + size_t{1};
  const Bytes codes(data + 3, data + size);
  check_bit_stream(codes, bits, is_signed);
  if (bits >= 2) check_words(codes, columns, bits, data[2], is_signed);
  check_nibble_words(codes, columns, is_signed);
  check_transpose(codes, columns);
  return 0;
}
