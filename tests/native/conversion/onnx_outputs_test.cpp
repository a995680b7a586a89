#include "onnx_graph/onnx_nodes.h"

#include <doctest/doctest.h>

#include <vector>

#include "formats/onnx_bytes.h"

using wasmquant::conversion::added_outputs;
using namespace test_files;

TEST_CASE("added outputs are a second graph, which holds a named value for each") {
  CHECK(added_outputs({}) == std::string("\x3a\x00", 2));
  const std::vector<std::string> one = {"h"};
  CHECK(added_outputs(one) == "\x3a\x05\x62\x03\x0a\x01h");
  const std::vector<std::string> names = {"e", std::string(300, 'x'), "größe/y:0"};
  Message graph;
  for (const std::string& name : names) graph.message(12, Message().text(1, name));
  CHECK(added_outputs(names) == Message().message(7, graph).out);
}
