// Error messages from pieces of text and numbers. One call per message: chains of std::string + would cost a kilobyte
// of WebAssembly each.
//   return error_at(ErrorCode::file_invalid, name, {"found ", 3, " items, allowed are ", limit});
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/error.h"

namespace wasmquant {

/// Text or a whole number; the text must outlive the call it is given to.
class Piece {
 public:
  Piece(const char* text) noexcept;  // these two out of line: they stand in every message
  Piece(std::string_view text) : text_(text) {}
  Piece(const std::string& text) noexcept;
  Piece(int number) : Piece(static_cast<int64_t>(number)) {}
  Piece(int64_t number)
      : number_(number < 0 ? ~static_cast<uint64_t>(number) + 1 : static_cast<uint64_t>(number)),
        kind_(number < 0 ? Kind::negative : Kind::number) {}
  Piece(uint32_t number) : number_(number), kind_(Kind::number) {}
  Piece(unsigned long number) : number_(number), kind_(Kind::number) {}
  Piece(unsigned long long number) : number_(number), kind_(Kind::number) {}

  void append_to(std::string& out) const;

 private:
  enum class Kind : uint8_t { text, number, negative };
  std::string_view text_;
  uint64_t number_ = 0;
  Kind kind_ = Kind::text;
};

std::string concat(std::initializer_list<Piece> pieces);
Error error_at(ErrorCode code, Piece where, std::initializer_list<Piece> message);

}  // namespace wasmquant
