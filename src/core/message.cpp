#include "core/message.h"

#include <charconv>

namespace wasmquant {

Piece::Piece(const char* text) noexcept : text_(text) {}
Piece::Piece(const std::string& text) noexcept : text_(text) {}

void Piece::append_to(std::string& out) const {
  if (kind_ == Kind::text) {
    out += text_;
    return;
  }
  if (kind_ == Kind::negative) out += '-';
  char digits[20];
  out.append(digits, std::to_chars(digits, digits + sizeof(digits), number_).ptr);
}

std::string concat(std::initializer_list<Piece> pieces) {
  std::string text;
  for (const Piece& piece : pieces) piece.append_to(text);
  return text;
}

Error error_at(ErrorCode code, Piece where, std::initializer_list<Piece> message) {
  Error error{code, {}, concat(message)};
  where.append_to(error.where);
  return error;
}

}  // namespace wasmquant
