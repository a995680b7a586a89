#include "core/json_text.h"

#include <doctest/doctest.h>

using namespace wasmquant;

TEST_CASE("text written as a stream equals the text of the value") {
  std::string text;
  json::TextWriter out(text);
  const uint64_t shape[] = {2, 0, 18446744073709551615u};
  out.begin('{');
  out.member("name", std::string_view("a\"\\\n\x01\xC3\xA4 \xFFz"));
  out.member("empty", std::string_view());
  out.member("bytes", uint64_t{9007199254740993});
  out.member("shape", std::span<const uint64_t>(shape));
  out.member("none", std::span<const uint64_t>());
  out.member("spec", json::Value());
  out.key("rows");
  out.begin('[');
  for (int i = 0; i < 2; ++i) {
    out.begin('{');
    out.end('}');
  }
  out.add_json("[1.5]");
  out.end(']');
  out.end('}');
  CHECK(text ==
        "{\"name\":\"a\\\"\\\\\\n\\u0001\xC3\xA4 \xEF\xBF\xBDz\",\"empty\":\"\",\"bytes\":9007199254740993,"
        "\"shape\":[2,0,18446744073709551615],\"none\":[],\"spec\":null,\"rows\":[{},{},[1.5]]}");
  CHECK(bool(json::parse(text)));
}
