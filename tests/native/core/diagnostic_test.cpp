// Lists of diagnostics: order, limit, repetitions.
#include "core/diagnostic.h"

#include <doctest/doctest.h>

#include <string>

using namespace wasmquant;

TEST_CASE("diagnostics: errors come first, then warnings, then notes") {
  DiagnosticList list;
  list.add({Severity::note, "no-effect", "/1", "a note", ""});
  list.warning("key-ignored", "/2", "a warning");
  list.error("value-invalid", "/3", "an error");
  list.error("value-invalid", "/4", "an error");
  list.warning("key-ignored", "/5", "another warning");
  std::string places;
  for (const Diagnostic& d : list.items()) places += d.where;
  CHECK(places == "/3/4/2/5/1");
  CHECK(list.errors() == 2);
}

TEST_CASE("diagnostics: a warning that repeats is one line with a count, errors keep their places") {
  DiagnosticList list;
  for (int i = 0; i < 1300; ++i) list.warning("key-ignored", "/" + std::to_string(i), "it has no effect");
  list.warning("key-ignored", "/0", "it has no effect");  // the same place again
  list.warning("not-applied", "/9", "it has no effect");
  for (int i = 0; i < 3; ++i) list.error("value-unknown", "/" + std::to_string(i), "there is no dtype \"int99\"");
  REQUIRE(list.items().size() == 5);
  CHECK(list.items()[0].code == "value-unknown");
  CHECK(list.items()[2].where == "/2");
  CHECK(list.items()[3].where == "/0");
  CHECK(list.items()[3].message == "it has no effect (and at 1299 other places)");
  CHECK(list.items()[4].message == "it has no effect");
}

TEST_CASE("diagnostics: the limit applies to each severity, and the last line counts the rest") {
  DiagnosticList list;
  for (int i = 0; i < 1000; ++i) list.warning("key-ignored", "", "warning " + std::to_string(i));
  list.error("value-invalid", "/late", "an error");
  for (int i = 0; i < 300; ++i) list.error("value-invalid", "", "error " + std::to_string(i));
  const List<Diagnostic>& items = list.items();
  REQUIRE(items.size() == 2 * (DiagnosticList::kLimit + 1));
  CHECK(items[0].where == "/late");
  CHECK(items[DiagnosticList::kLimit].message == "101 more errors are not shown");
  CHECK(items[DiagnosticList::kLimit].severity == Severity::error);
  CHECK(items.back().message == "800 more warnings are not shown");
  CHECK(list.errors() == 301);
}
