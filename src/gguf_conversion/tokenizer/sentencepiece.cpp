#include "gguf_conversion/tokenizer/sentencepiece.h"

#include <cstring>

#include "core/message.h"

namespace wasmquant::conversion {
namespace {

enum Wire : uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// The fields of one message; `number` and the value are valid until the next call of next().
class Fields {
 public:
  explicit Fields(std::string_view message) noexcept : left_(message) {}

  uint32_t number = 0;
  Wire wire = varint;
  uint64_t value = 0;        // varint, fixed32, fixed64
  std::string_view payload;  // bytes

  /// False at the end and at a broken field.
  bool next() noexcept {
    if (left_.empty() || is_broken_) return false;
    uint64_t key = 0;
    is_broken_ = !read_varint(key) || !read_payload(static_cast<uint32_t>(key & 7));
    number = static_cast<uint32_t>(key >> 3);
    return !is_broken_;
  }
  bool is_broken() const noexcept { return is_broken_; }
  size_t left() const noexcept { return left_.size(); }

 private:
  bool read_payload(uint32_t type) noexcept {
    wire = static_cast<Wire>(type);
    switch (type) {
      case varint:
        return read_varint(value);
      case fixed64:
        return read_fixed(8);
      case fixed32:
        return read_fixed(4);
      case bytes:
        if (!read_varint(value) || value > left_.size()) return false;
        payload = left_.substr(0, static_cast<size_t>(value));
        left_.remove_prefix(payload.size());
        return true;
      default:
        return false;
    }
  }
  bool read_fixed(size_t count) noexcept {
    if (left_.size() < count) return false;
    value = 0;
    std::memcpy(&value, left_.data(), count);
    left_.remove_prefix(count);
    return true;
  }
  bool read_varint(uint64_t& out) noexcept {
    out = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(left_.front());
      left_.remove_prefix(1);
      out |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  std::string_view left_;
  bool is_broken_ = false;
};

bool read_piece(std::string_view message, SentencePieceModel::Piece& piece) noexcept {
  constexpr uint32_t kLastType = 6;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number == 1 && fields.wire == bytes) piece.text = fields.payload;
    if (fields.number == 2 && fields.wire == fixed32) std::memcpy(&piece.score, &fields.value, sizeof(piece.score));
    if (fields.number == 3 && fields.wire == varint) piece.type = static_cast<uint32_t>(fields.value);
  }
  return !fields.is_broken() && piece.type >= 1 && piece.type <= kLastType;
}

bool read_trainer(std::string_view message, SentencePieceModel& model) noexcept {
  Fields fields(message);
  while (fields.next())
    if (fields.number == 3 && fields.wire == varint) model.is_unigram = fields.value == 1;
  return !fields.is_broken();
}

bool read_normalizer(std::string_view message, SentencePieceModel& model) noexcept {
  Fields fields(message);
  while (fields.next()) {
    if (fields.number == 2 && fields.wire == bytes) model.character_map = fields.payload;
    if (fields.number == 3 && fields.wire == varint) model.adds_dummy_prefix = fields.value != 0;
    if (fields.number == 4 && fields.wire == varint) model.removes_extra_whitespaces = fields.value != 0;
  }
  return !fields.is_broken();
}

}  // namespace

Result<SentencePieceModel> read_sentencepiece(std::span<const uint8_t> file) {
  SentencePieceModel model;
  Fields fields({reinterpret_cast<const char*>(file.data()), file.size()});
  bool is_good = true;
  while (is_good && fields.next()) {
    if (fields.wire != bytes) continue;
    if (fields.number == 1) is_good = read_piece(fields.payload, model.pieces.emplace_back());
    if (fields.number == 2) is_good = read_trainer(fields.payload, model);
    if (fields.number == 3) is_good = read_normalizer(fields.payload, model);
  }
  if (!is_good || fields.is_broken() || model.pieces.empty())
    return error_at(ErrorCode::file_invalid, text_of("byte {}", uint64_t{file.size() - fields.left()}),
                    "this is not a SentencePiece model");
  return model;
}

}  // namespace wasmquant::conversion
