// What JavaScript gets of results and errors.
#include "border/reply.h"

#include <cmath>

#include "bindings/bound_model.h"

namespace wasmquant::testing {
namespace {

std::vector<double> numbers_at(Address address) {
  const double* const begin = pointer<const double>(address);
  return {begin + 1, begin + 1 + static_cast<size_t>(*begin)};
}

double as_number(const void* at) { return static_cast<double>(reinterpret_cast<Address>(at)); }

const Error kRefused{ErrorCode::argument_invalid, "here", "is \"wrong\""};

TEST_CASE("replies: an error gives what no result is, and waits until it is taken") {
  take_error();
  CHECK_FALSE(reply(Status(kRefused)));
  CHECK(take_error() == R"({"code":"argument-invalid","where":"here","message":"is \"wrong\""})");
  CHECK(take_error() == "");
  CHECK(std::isnan(reply(Result<bool>(kRefused))));
  CHECK(std::isnan(reply(Result<double>(kRefused))));
  CHECK(reply(Result<json::Value>(kRefused)) == "");
  CHECK(reply(Result<List<TileRead>>(kRefused)) == 0);
  CHECK(reply(Result<TileResult>(kRefused)) == 0);
  CHECK(reply(Result<List<Region>>(kRefused)) == 0);
  CHECK(reply(Result<Parts>(kRefused)) == 0);
  CHECK(reply(Result<std::span<const float>>(kRefused)) == 0);
  CHECK(take_error() != "");
  List<Diagnostic> diagnostics;
  diagnostics.push_back({Severity::error, "key-unknown", "/a", "is unknown", "remove it"});
  CHECK(reply(Made<BoundWork>(kRefused), diagnostics) == nullptr);
  const auto kept = json::parse(take_error());
  REQUIRE(bool(kept));
  CHECK((*kept)["diagnostics"].items()[0]["code"].as_string() == "key-unknown");
}

TEST_CASE("replies: values") {
  CHECK(reply(Status()));
  CHECK(reply(Result<bool>(true)) == 1);
  CHECK(reply(Result<bool>(false)) == 0);
  CHECK(reply(Result<double>(0.25)) == 0.25);
  CHECK(reply(json::Value()) == "null");
  CHECK(reply(JsonText{"[1]"}) == "[1]");
  CHECK(reply(Result<json::Value>(json::Value("x"))) == "\"x\"");
}

TEST_CASE("replies: reads, tiles, regions and parts are numbers behind their count") {
  uint8_t bytes[8] = {};
  List<TileRead> reads;
  TileRead read;
  read.part = 1;
  read.file = 2;
  read.begin = uint64_t{1} << 40;
  read.row_bytes = 4;
  read.stride = 16;
  read.rows = 3;
  read.pointer = bytes;
  reads.push_back(read);
  CHECK(numbers_at(reply(reads)) == std::vector<double>{1, 2, 0x1p40, 4, 16, 3, as_number(bytes)});

  kernels::ErrorSums sums;
  sums.signal = 1;
  sums.quantized = 2;
  sums.noise = 3;
  sums.max_abs = 4;
  sums.count = 5;
  sums.x_not_finite = 6;
  sums.y_not_finite = 7;
  TileResult tile;
  tile.sums = {&sums, 1};
  tile.writes.push_back({8, 9, bytes, 8});
  CHECK(numbers_at(reply(Result<TileResult>(std::move(tile)))) ==
        std::vector<double>{1, 1, 2, 3, 4, 5, 6, 7, 8, 9, as_number(bytes), 8});
  CHECK(numbers_at(reply(Result<TileResult>(TileResult{}))) == std::vector<double>{0});

  const float floats[3] = {};
  CHECK(numbers_at(reply(region_of(std::span(floats)))) == std::vector<double>{as_number(floats), 12});
  CHECK(numbers_at(reply(Result<std::span<const float>>(std::span<const float>(floats)))) ==
        std::vector<double>{as_number(floats), 12});

  Parts parts;
  parts.facts.set("a", 1);
  parts.add("first", region_of(std::span(floats)));
  parts.add("none", {});
  const auto found = numbers_at(reply(Result<Parts>(std::move(parts))));
  REQUIRE(found.size() == 6);
  CHECK(std::string(pointer<const char>(static_cast<Address>(found[0])), static_cast<size_t>(found[1])) ==
        R"({"facts":{"a":1},"names":["first","none"]})");
  CHECK(std::vector(found.begin() + 2, found.end()) == std::vector<double>{as_number(floats), 12, 0, 0});
}

TEST_CASE("replies: the sizes of tiles have defaults") {
  const TileBytes defaults;
  const TileBytes none = tile_bytes_of(taken(json::parse(R"({"tileBytes": "x"})")));
  CHECK(none.rows == defaults.rows);
  CHECK(none.columns == defaults.columns);
  const TileBytes given = tile_bytes_of(taken(json::parse(R"({"tileBytes": 512, "columnTileBytes": 1024})")));
  CHECK(given.rows == 512);
  CHECK(given.columns == 1024);
}

}  // namespace
}  // namespace wasmquant::testing
