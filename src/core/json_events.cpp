// The only parser of JSON text: RapidJSON's SAX reader. Numbers are passed as text: RapidJSON's strtod misrounds near
// 5e-324 and some releases read outside its tables for zeros and tiny numbers. Added here: limits (depth also bounds
// the reader's recursion), UTF-8, lone low surrogates (RapidJSON rejects only lone high ones), NUL as garbage after the
// value (RapidJSON treats it as the end), and allocation failure (RapidJSON would write through null).
#include "core/json_events.h"

// Releases of RapidJSON before 2022 compare `null + n` with null when their empty stack grows for the first time;
// harmless, but undefined, and reported by clang's sanitizer.
#ifdef __clang__
#pragma clang attribute push(__attribute__((no_sanitize("pointer-overflow"))), apply_to = function)
#endif
// RapidJSON's definition, always_inline, copies the stack's growth code to every place that appends a character.
#define RAPIDJSON_FORCEINLINE
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>
#ifdef __clang__
#pragma clang attribute pop
#endif

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "core/decimal.h"
#include "core/message.h"

namespace wasmquant::json {
namespace {

struct AbortingAllocator {
  void* Malloc(size_t bytes) { return Realloc(nullptr, 0, bytes); }
  void* Realloc(void* old, size_t /*old_bytes*/, size_t bytes) {
    if (bytes == 0) {
      std::free(old);
      return nullptr;
    }
    void* memory = std::realloc(old, bytes);
    if (memory == nullptr) std::abort();
    return memory;
  }
  static void Free(void* memory) noexcept { std::free(memory); }
};

// RapidJSON counts in 32 bits; this also keeps its 1.5-fold growing string buffer below 4 GiB.
constexpr uint64_t kReaderMaxBytes = 0x7fff'ffff;

constexpr char kLoneSurrogate[] = "a string contains a lone surrogate escape; surrogates come in pairs";
constexpr char kNoValue[] = "expected a JSON value";
constexpr char kNumberTooBig[] = "a number is too large for a double (at most 1.797e308)";

Error json_error(uint64_t offset, const std::string& message) {
  return error_at(ErrorCode::json_invalid, text_of("byte {}", offset), "{}", message);
}

std::string found_at(std::string_view text, size_t offset) {
  if (offset >= text.size()) return "the end of the text";
  const auto byte = static_cast<unsigned char>(text[offset]);
  if (byte > 0x20 && byte < 0x7f) return text_of("'{}'", text.substr(offset, 1));
  constexpr std::string_view kHex = "0123456789abcdef";
  return text_of("byte 0x{}{}", kHex.substr(byte >> 4, 1), kHex.substr(byte & 15, 1));
}

// UTF-8 spells surrogates ED A0 80 … ED BF BF. Raw ones are invalid, so these came from an escape.
bool has_lone_surrogate(std::string_view text) {
  for (size_t i = text.find('\xED'); i != text.npos && i + 1 < text.size(); i = text.find('\xED', i + 1))
    if (static_cast<unsigned char>(text[i + 1]) >= 0xA0) return true;
  return false;
}

bool read_integer(std::string_view digits, bool is_negative, uint64_t& magnitude) {
  const uint64_t limit = is_negative ? uint64_t{1} << 63 : ~uint64_t{0};
  for (const char c : digits) {
    if (c < '0' || c > '9') return false;
    const auto digit = static_cast<uint64_t>(c - '0');
    if (magnitude > (limit - digit) / 10) return false;
    magnitude = magnitude * 10 + digit;
  }
  return true;
}

// Fills an event from text that matches the JSON number grammar.
void read_number(std::string_view text, Event& event) {
  event.is_negative = text.front() == '-';
  event.kind = EventKind::integer;
  if (read_integer(text.substr(event.is_negative ? 1 : 0), event.is_negative, event.magnitude)) return;
  event = {.kind = EventKind::real, .real = parse_decimal(text)};
}

// RapidJSON's handler concept, turned into events.
class Handler {
 public:
  Handler(const rapidjson::MemoryStream& stream, const Limits& limits, Listener& listener, uint64_t first_byte)
      : stream_(stream), limits_(limits), listener_(listener), first_byte_(first_byte) {}

  bool Null() { return value(fresh(EventKind::null)); }
  bool Bool(bool v) {
    Event& event = fresh(EventKind::boolean);
    event.boolean = v;
    return value(event);
  }
  bool RawNumber(const char* text, unsigned length, bool) {
    const std::string_view number(text, length);
    if (const size_t letter = number.find_first_of("IN"); letter != number.npos) return constant(number, letter);
    Event& event = fresh(EventKind::integer);
    read_number(number, event);
    if (event.kind == EventKind::real && !std::isfinite(event.real)) return refuse(kNumberTooBig, length);
    return value(event);
  }
  bool String(const char* text, unsigned length, bool) {
    return checked_text(EventKind::string, {text, length}) && value(event_);
  }
  bool Key(const char* text, unsigned length, bool) {
    return checked_text(EventKind::key, {text, length}) && send(event_);
  }
  bool StartObject() { return open(EventKind::object_begin); }
  bool EndObject(unsigned) { return close(EventKind::object_end); }
  bool StartArray() { return open(EventKind::array_begin); }
  bool EndArray(unsigned) { return close(EventKind::array_end); }
  // Never called, since numbers are passed as text, but the reader requires them.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(int64_t) { return false; }
  bool Uint64(uint64_t) { return false; }
  bool Double(double) { return false; }

  Status& status() { return status_; }

 private:
  // Bytes of a bracket: the reader is past every token that it reports; brackets report their own position.
  static unsigned bracket_bytes(EventKind kind) { return kind >= EventKind::object_begin ? 1 : 0; }
  // The one event, cleared: clearing takes more code than setting.
  Event& fresh(EventKind kind) {
    event_ = {};
    event_.kind = kind;
    return event_;
  }
  bool send(Event& event) {
    event.depth = depth_;
    event.byte = first_byte_ + stream_.Tell() - bracket_bytes(event.kind);
    status_ = listener_.on(event);
    return static_cast<bool>(status_);
  }
  bool value(Event& event) {
    if (++nodes_ > limits_.max_nodes)
      return refuse(text_of("more than {} values", limits_.max_nodes), bracket_bytes(event.kind));
    return send(event);
  }
  bool open(EventKind kind) {
    if (depth_ >= limits_.max_depth)
      return refuse(text_of("nested deeper than {} arrays and objects", limits_.max_depth), bracket_bytes(kind));
    if (!value(fresh(kind))) return false;
    ++depth_;
    return true;
  }
  bool close(EventKind kind) {
    --depth_;
    return send(fresh(kind));
  }
  // The reader accepts more words ("Inf", "-NaN", "NaN.5") than Python. `letter`: index of the first letter.
  bool constant(std::string_view word, size_t letter) {
    const bool is_nan = word == "NaN";
    if (limits_.grammar != Grammar::python || !(is_nan || word == "Infinity" || word == "-Infinity"))
      return refuse(text_of("{}, found '{}'", kNoValue, word.substr(letter, 1)),
                    static_cast<unsigned>(word.size() - letter));
    Event& event = fresh(EventKind::real);
    event.real = is_nan ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    if (letter > 0) event.real = -event.real;
    return value(event);
  }
  bool checked_text(EventKind kind, std::string_view text) {
    if (has_lone_surrogate(text)) return refuse(kLoneSurrogate);
    fresh(kind).text = text;
    return true;
  }
  bool refuse(const std::string& message, unsigned bytes_back = 0) {
    status_ = json_error(first_byte_ + stream_.Tell() - bytes_back, message);
    return false;
  }

  const rapidjson::MemoryStream& stream_;
  const Limits& limits_;
  Listener& listener_;
  uint64_t first_byte_;
  uint32_t depth_ = 0;
  uint64_t nodes_ = 0;
  Event event_;
  Status status_;
};

// What the reader expected; each sentence is followed by what it found.
std::string_view syntax_message(rapidjson::ParseErrorCode code) {
  switch (code) {
    case rapidjson::kParseErrorDocumentEmpty:
      return kNoValue;
    case rapidjson::kParseErrorDocumentRootNotSingular:
      return "expected nothing after the JSON value";
    case rapidjson::kParseErrorObjectMissName:
      return "expected a key in quotes";
    case rapidjson::kParseErrorObjectMissColon:
      return "expected ':' after a key";
    case rapidjson::kParseErrorObjectMissCommaOrCurlyBracket:
      return "expected ',' or '}'";
    case rapidjson::kParseErrorArrayMissCommaOrSquareBracket:
      return "expected ',' or ']'";
    case rapidjson::kParseErrorStringUnicodeEscapeInvalidHex:
      return "a \\u escape needs four hexadecimal digits";
    case rapidjson::kParseErrorStringUnicodeSurrogateInvalid:
      return kLoneSurrogate;
    case rapidjson::kParseErrorStringEscapeInvalid:
      return "a string contains a control character or an unknown escape";
    case rapidjson::kParseErrorStringMissQuotationMark:
      return "a string is not closed";
    case rapidjson::kParseErrorStringInvalidEncoding:
      return "a string is not valid UTF-8";
    case rapidjson::kParseErrorNumberTooBig:
      return kNumberTooBig;
    case rapidjson::kParseErrorNumberMissFraction:
      return "a number needs digits after its point";
    case rapidjson::kParseErrorNumberMissExponent:
      return "a number needs digits in its exponent";
    default:
      return kNoValue;
  }
}

}  // namespace

std::string_view describe(EventKind kind) noexcept {
  switch (kind) {
    case EventKind::null:
      return "null";
    case EventKind::boolean:
      return "a boolean";
    case EventKind::integer:
      return "an integer";
    case EventKind::real:
      return "a real number";
    case EventKind::string:
      return "a string";
    case EventKind::key:
      return "a key";
    case EventKind::object_begin:
    case EventKind::object_end:
      return "an object";
    case EventKind::array_begin:
    case EventKind::array_end:
      return "an array";
  }
  return "a value";
}

Status parse_events(std::string_view text, const Limits& limits, Listener& listener, uint64_t first_byte) {
  const uint64_t max_bytes = std::min(limits.max_bytes, kReaderMaxBytes);
  if (text.size() > max_bytes)
    return json_error(first_byte, text_of("the text has {} bytes; the limit is {}", text.size(), max_bytes));

  // Read up to the first byte that is not UTF-8: an error there is that byte's fault.
  const size_t readable = utf8_prefix(text);
  rapidjson::MemoryStream stream(text.data(), readable);
  Handler handler(stream, limits, listener, first_byte);
  AbortingAllocator allocator;
  rapidjson::GenericReader<rapidjson::UTF8<>, rapidjson::UTF8<>, AbortingAllocator> reader(&allocator);
  constexpr unsigned kFlags = rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseNanAndInfFlag;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, handler);
  if (!handler.status()) return std::move(handler.status());
  const size_t offset = result.IsError() ? result.Offset() : stream.Tell();
  if (!result.IsError() && offset == text.size()) return {};
  auto code = result.IsError() ? result.Code() : rapidjson::kParseErrorDocumentRootNotSingular;
  if (code == rapidjson::kParseErrorStringMissQuotationMark && offset == readable && readable < text.size())
    code = rapidjson::kParseErrorStringInvalidEncoding;
  return json_error(first_byte + offset, text_of("{}, found {}", syntax_message(code), found_at(text, offset)));
}

}  // namespace wasmquant::json
