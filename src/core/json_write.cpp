// json::Value to text. Layout equals JSON.stringify(value, null, indent), except that a whole `real` keeps its ".0",
// so that it reads back as `real`. Doubles are printed by RapidJSON's Grisu2: always read back to the same double.
#include <rapidjson/internal/dtoa.h>

#include <cmath>

#include "core/json.h"
#include "core/json_text.h"
#include "core/message.h"

namespace wasmquant::json {
namespace {

struct Sequence {
  uint8_t bytes;
  bool is_valid;
};

// The UTF-8 sequence at `i`, after Unicode table 3-7. An invalid one is its longest well-formed prefix (at least one
// byte), the unit that becomes one U+FFFD, as in the WHATWG decoder.
Sequence sequence_at(std::string_view text, size_t i) {
  const auto byte = [&](size_t at) -> unsigned { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u; };
  const unsigned lead = byte(i);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  const uint8_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (byte(i + 1) < low || byte(i + 1) > high) return {1, false};
  for (uint8_t k = 2; k < length; ++k)
    if ((byte(i + k) & 0xC0) != 0x80) return {k, false};
  return {length, true};
}

// ASCII that needs no escape.
bool is_plain(char c) noexcept { return static_cast<signed char>(c) >= 0x20 && c != '"' && c != '\\'; }

void append_real(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char buffer[32];  // 17 digits, sign, point, exponent, or up to 21 digits and ".0"
  out.append(buffer, rapidjson::internal::dtoa(value, buffer));
}

class JsonWriter {
 public:
  JsonWriter(std::string& out, int indent) : out_(out), indent_(indent < 0 ? 0 : static_cast<size_t>(indent)) {}

  void write(const Value& value) {
    switch (value.kind()) {
      case Kind::null:
        out_ += "null";
        break;
      case Kind::boolean:
        out_ += value.as_bool() ? "true" : "false";
        break;
      case Kind::integer:
        append_number(out_, value.as_integer());
        break;
      case Kind::real:
        append_real(out_, value.as_number());
        break;
      case Kind::string:
        append_quoted(out_, value.as_string());
        break;
      case Kind::array:
        open('[');
        for (const Value& item : value.items()) {
          next(&item == value.items().data());
          write(item);
        }
        close(']', value.items().empty());
        break;
      case Kind::object:
        open('{');
        for (const Member& member : value.members()) {
          next(&member == value.members().data());
          append_quoted(out_, member.first);
          out_ += indent_ > 0 ? ": " : ":";
          write(member.second);
        }
        close('}', value.members().empty());
        break;
    }
  }

 private:
  void open(char bracket) {
    out_ += bracket;
    ++depth_;
  }
  void next(bool is_first) {
    if (!is_first) out_ += ',';
    line();
  }
  void close(char bracket, bool is_empty) {
    --depth_;
    if (!is_empty) line();
    out_ += bracket;
  }
  void line() {
    if (indent_ == 0) return;
    out_ += '\n';
    out_.append(depth_ * indent_, ' ');
  }

  std::string& out_;
  size_t indent_;
  size_t depth_ = 0;
};

}  // namespace

std::string write(const Value& value, int indent) {
  std::string out;
  JsonWriter(out, indent).write(value);
  return out;
}

void append_quoted(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  constexpr std::string_view kShort = "\b\t\n\f\r", kLetter = "btnfr";
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const size_t plain = i;  // most texts have nothing to escape
    while (i < text.size() && is_plain(text[i])) ++i;
    out.append(text.data() + plain, i - plain);
    if (i == text.size()) break;
    const char c = text[i];
    const Sequence sequence = sequence_at(text, i);
    if (!sequence.is_valid) {
      out += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      const size_t letter = kShort.find(c);
      out += '\\';
      if (letter != kShort.npos) {
        out += kLetter[letter];
      } else {
        out += "u00";
        out += kHex[static_cast<unsigned char>(c) >> 4];
        out += kHex[c & 15];
      }
    } else {
      out.append(text.substr(i, sequence.bytes));
    }
    i += sequence.bytes;
  }
  out += '"';
}

bool is_utf8(std::string_view text) noexcept { return utf8_prefix(text) == text.size(); }

size_t utf8_prefix(std::string_view text) noexcept {
  size_t i = 0;
  while (i < text.size()) {
    const Sequence sequence = sequence_at(text, i);
    if (!sequence.is_valid) break;
    i += sequence.bytes;
  }
  return i;
}

void TextWriter::separate() {
  if (follows_) out_ += ',';
  follows_ = true;
}

void TextWriter::begin(char bracket) {
  separate();
  out_ += bracket;
  follows_ = false;
}

void TextWriter::end(char bracket) {
  out_ += bracket;
  follows_ = true;
}

void TextWriter::key(const char* name) {
  separate();
  out_ += '"';
  out_ += name;
  out_ += "\":";
  follows_ = false;
}

void TextWriter::add(std::string_view text) {
  separate();
  append_quoted(out_, text);
}

void TextWriter::add(uint64_t number) {
  separate();
  append_number(out_, number);
}

void TextWriter::add(std::span<const uint64_t> numbers) {
  begin('[');
  for (const uint64_t number : numbers) add(number);
  end(']');
}

void TextWriter::add(const Value& value) { add_json(write(value)); }

void TextWriter::add_json(std::string_view text) {
  separate();
  out_ += text;
}

}  // namespace wasmquant::json
