// The rows of runtimes.def name formats, presets and runtimes that exist.
#include "runtimes/runtime.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "config/presets.h"
#include "families/word_list.h"
#include "pipeline/plan/output_format.h"

using namespace wasmquant;
using families::any_word;

namespace {

bool is_runtime(std::string_view id) {
  return std::any_of(std::begin(runtimes::kRuntimes), std::end(runtimes::kRuntimes),
                     [&](const runtimes::Runtime& row) { return row.id == id; });
}

// The words for which `test` fails, for messages.
template <class Test>
std::string unknown_words(std::string_view words, const Test& test) {
  std::string unknown;
  any_word(words, [&](std::string_view word) {
    if (!test(word)) unknown += std::string(word) + " ";
    return false;
  });
  return unknown;
}

bool is_format(std::string_view name) { return output_format_named(name) != nullptr; }

}  // namespace

TEST_CASE("runtimes read formats that can be written, and curves use presets that exist") {
  for (const runtimes::Runtime& row : runtimes::kRuntimes) {
    CAPTURE(std::string(row.id));
    CHECK(unknown_words(row.formats, is_format) == "");
    CHECK_FALSE(row.formats.empty());
    CHECK(unknown_words(row.presets, [](std::string_view name) { return config::preset_named(name) != nullptr; }) ==
          "");
  }
}

TEST_CASE("places name runtimes that read their formats") {
  for (const runtimes::Place& place : runtimes::kPlaces) {
    CAPTURE(std::string(place.id));
    CHECK(unknown_words(place.formats, is_format) == "");
    CHECK(unknown_words(place.runtimes, is_runtime) == "");
    for (const runtimes::Runtime& row : runtimes::kRuntimes)
      if (families::is_word(place.runtimes, row.id))
        CHECK(any_word(row.formats, [&](std::string_view name) { return families::is_word(place.formats, name); }));
  }
}

TEST_CASE("every output format has a text and a place, and is read by a runtime") {
  for (const OutputFormat& format : output_formats()) {
    CAPTURE(std::string(format.name));
    CHECK(runtimes::text_named(format.name) != nullptr);
    CHECK(std::any_of(std::begin(runtimes::kPlaces), std::end(runtimes::kPlaces),
                      [&](const runtimes::Place& place) { return families::is_word(place.formats, format.name); }));
    CHECK(std::any_of(std::begin(runtimes::kRuntimes), std::end(runtimes::kRuntimes),
                      [&](const runtimes::Runtime& row) { return families::is_word(row.formats, format.name); }));
  }
}
