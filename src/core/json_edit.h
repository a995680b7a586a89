// Changes single members of a JSON text; every other byte stays as it is: numbers keep their spelling (30.0, 1e-05,
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

/// `text` with the member at `path` set to `value`, a JSON text as write(…, 2) makes it. A value is replaced where it
/// stands; a new member goes to the end of its object. Objects on the path that the text lacks are made, also in place
/// of null. Where a name appears twice in an object, its last member is meant, as in Python and JavaScript.
/// New lines are indented like those around them, and in an object that has its members on one line there are none.
/// Errors: json-invalid at "byte N" where the text is not JSON or not an object, and at a JSON pointer where the path
/// leads through a value that has no members.
Result<std::string> set_member(std::string_view text, Path path, std::string_view value,
                               const Limits& limits = kPython);

/// `text` without the member at `path`; all members of that name go. The comma and the white space that set_member
/// would have written go with it. The same text where nothing is at `path`.
/// Errors: json-invalid at "byte N" where the text is not JSON or not an object.
Result<std::string> remove_member(std::string_view text, Path path, const Limits& limits = kPython);

}  // namespace wasmquant::json
