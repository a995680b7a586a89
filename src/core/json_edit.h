// Changes single members of a JSON text; every other byte is preserved: numbers keep their spelling (30.0, 1e-05,
// integers beyond 2^53), and so do line ends and indentation.
//   {                       set_member(text, {"b", "c"}, "[\n  2\n]")       {
//     "a": 30.0                                                               "a": 30.0,
//   }                                                                         "b": {
//                                                                               "c": [
//                                                                                 2
//                                                                               ]
//                                                                             }
//                                                                           }
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/result.h"

namespace wasmquant::json {

/// Names of members, from the outermost object inwards; at least one.
using Path = std::span<const std::string_view>;

/// `text` with the member at `path` set to `value`, a JSON text from write(…, 2). An existing value is replaced in
/// place; a new member is appended to its object. Missing objects on the path are created, also in place of null. If a
/// name occurs twice in an object, its last member counts, as in Python and JavaScript. New lines are indented like
/// their neighbours; an object with all members on one line stays on one line. Errors: json-invalid at "byte N" if the
/// text is not JSON or not an object, and at a JSON pointer if the path leads through a value without members.
Result<std::string> set_member(std::string_view text, Path path, std::string_view value,
                               const Limits& limits = kPython);

/// `text` without the members at `path`, including the comma and white space that set_member would have written.
/// Unchanged if there is nothing at `path`. Errors: json-invalid at "byte N" if the text is not JSON or not an object.
Result<std::string> remove_member(std::string_view text, Path path, const Limits& limits = kPython);

}  // namespace wasmquant::json
