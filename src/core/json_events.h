// JSON as a stream of events, for texts too large for json::Value: only open containers are kept. Same grammar and
// limits as json::parse, except that duplicate keys are up to the listener.
#pragma once
#include <cstdint>
#include <string_view>

#include "core/json.h"
#include "core/result.h"

namespace wasmquant::json {

/// The kind of an event.
enum class EventKind : uint8_t {
  null,
  boolean,
  integer,
  real,
  string,
  key,
  object_begin,
  object_end,
  array_begin,
  array_end
};

/// One token of the text. Fields that do not belong to `kind` are zero.
struct Event {
  EventKind kind = EventKind::null;
  bool boolean = false;
  bool is_negative = false;  // integer: a minus sign was written; "-0" is negative with magnitude 0
  uint32_t depth = 0;        // containers open around this token; a container's own begin and end have equal depths
  uint64_t magnitude = 0;  // integer: exact absolute value, up to 2^64 - 1 (2^63 when negative); larger ones are `real`
  double real = 0;         // real: finite in strict grammar
  std::string_view text;   // string, key: unescaped valid UTF-8, valid until the listener returns
  uint64_t byte = 0;       // offset of a bracket, or just past any other token
};

/// Short English name of an event's value, for messages: "null", "an integer", "an object", ...
std::string_view describe(EventKind kind) noexcept;

/// Receives the events in the order of the text. An error ends the parse and becomes its result.
class Listener {
 public:
  virtual Status on(const Event& event) = 0;

 protected:
  ~Listener() = default;
};

/// Reads one JSON text. `first_byte` is the offset of `text` in its file; it is added to every byte offset in events
/// and errors. Errors: json-invalid with `where` = "byte N", or the listener's.
Status parse_events(std::string_view text, const Limits& limits, Listener& listener, uint64_t first_byte = 0);

}  // namespace wasmquant::json
