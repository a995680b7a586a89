// BoundBlockCalibrator: the parts of a block by one member or by two, and what is stored.
#include "bindings/bound_calibration.h"

namespace wasmquant::testing {
namespace {

const std::string kGptq = calibrated_config(R"({"name": "gptq"})");

struct Member {
  explicit Member(uint32_t number, uint32_t members, const std::string& config = kGptq)
      : pass(config, "files/forward/llama", number, members), number_(number) {
    pass.steps(0, 1);
    pass.load(1);
    block = taken(BoundBlockCalibrator::make(*pass.calibration, *pass.work, pass.tasks(1)));
  }

  uint32_t slot(size_t weight) const {
    return static_cast<uint32_t>(model::block_weights(pass.plan.architecture)[weight].slot);
  }
  std::string stored() {
    std::string out;
    for (size_t i = 0; i < model::block_weights(pass.plan.architecture).size(); ++i)
      out += written_by(taken(block->store(slot(i))));
    return out;
  }

  CalibratedPass pass;
  std::unique_ptr<BoundBlockCalibrator> block;
  uint32_t number_;
};

void copy(const List<Region>& from, const List<Region>& to) {
  REQUIRE(from.size() == to.size());
  for (size_t i = 0; i < from.size(); ++i) {
    REQUIRE(from[i].size() == to[i].size());
    std::memcpy(const_cast<uint8_t*>(to[i].data()), from[i].data(), from[i].size());
  }
}

std::string sizes_of(const List<Region>& regions) {
  json::Array sizes;
  for (const Region region : regions) sizes.push_back(static_cast<uint64_t>(region.size()));
  return json::write(sizes);
}

/// All parts, each member running its portions and showing them to the others.
void calibrate_all(std::vector<Member*> team) {
  const json::Value parts = team[0]->block->parts();
  REQUIRE(parts.items().size() > 0);
  const auto exchange = [&](const auto& regions_of) {
    for (Member* const from : team)
      for (Member* const to : team)
        if (from != to) copy(regions_of(*from, from->number_), regions_of(*to, from->number_));
  };
  for (uint32_t part = 0; part < parts.items().size(); ++part) {
    for (const json::Value& item : parts.items()[part].items()) {
      const auto portion = static_cast<uint32_t>(item.as_integer());
      Member& own = *team[portion % team.size()];
      const List<Region> recorded = taken(own.block->record(part, portion));
      for (Member* const other : team)
        if (other != &own) copy(recorded, taken(other->block->expect(part, sizes_of(recorded))));
      for (Member* const member : team) CHECK(refusal(member->block->show(member == &own)) == "");
    }
    exchange([](Member& member, uint32_t number) { return member.block->sums(number); });
    for (bool is_done = false; !is_done;) {
      for (Member* const member : team) is_done = taken(member->block->optimize(part));
      if (!is_done) exchange([](Member& member, uint32_t number) { return member.block->results(number); });
    }
  }
}

TEST_CASE("BoundBlockCalibrator: two members store what one stores") {
  Member alone(0, 1), first(0, 2), second(1, 2), plain(0, 1, calibrated_config(""));
  calibrate_all({&alone});
  calibrate_all({&first, &second});
  const std::string stored = alone.stored();
  CHECK(stored.size() > 0);
  CHECK(first.stored() == stored);
  CHECK(second.stored() == stored);
  for (uint32_t part = 0; part < plain.block->parts().items().size(); ++part) CHECK(taken(plain.block->optimize(part)));
  CHECK(plain.stored() != stored);  // of another rounding

  const TileResult tile = taken(alone.block->store(static_cast<uint32_t>(model::Slot::q)));
  CHECK(tile.sums.size() == 1);
  CHECK(tile.sums[0].count > 0);
}

TEST_CASE("BoundBlockCalibrator: says what the inputs of a layer tell about it") {
  Member member(0, 1);
  const auto slot = static_cast<uint32_t>(model::Slot::q);
  CHECK(member.block->evidence(slot).is_null());
  calibrate_all({&member});
  const json::Value evidence = member.block->evidence(slot);
  CHECK(evidence["tokens"].as_integer() == 640);
  CHECK(evidence["columns"].as_integer() == 24);
  CHECK(evidence["signal"].as_number() > evidence["error"].as_number());
  CHECK(evidence["error"].as_number() > 0);
  CHECK(member.block->evidence(static_cast<uint32_t>(model::Slot::input_norm)).is_null());
  CHECK(member.block->evidence(~0u).is_null());
}

TEST_CASE("BoundBlockCalibrator: refuses tasks, and parts and portions out of order") {
  Member member(0, 1);
  const auto& [pass, block] = std::tie(member.pass, *member.block);
  const auto made = [&](const std::string& tasks) {
    return refusal(BoundBlockCalibrator::make(*pass.calibration, *pass.work, tasks));
  };
  CHECK(made("[").substr(0, 12) == "json-invalid");
  CHECK(made(R"([{"slot": 0, "items": [999]}])").find("argument-invalid task 999: does not exist") == 0);
  for (const char* const slot : {"-1", "100"})
    CHECK(made(std::string(R"([{"slot": )") + slot + R"(, "items": [0]}])") ==
          "argument-invalid calibration: slot " + std::string(slot) + " is not a tensor of a block");
  CHECK(made("[]").find(": was not loaded, or has no task in the plan") != std::string::npos);

  const std::string not_next = "argument-invalid calibration: part 1 is not the next";
  CHECK(refusal(block.record(1, 0)) == not_next);
  CHECK(refusal(block.expect(1, "[]")) == not_next);
  CHECK(refusal(block.optimize(1)) == not_next);
  CHECK(refusal(block.record(0, 2)) == "argument-invalid portion: does not exist");
  CHECK(refusal(block.optimize(0)) == "state-invalid calibration: no inputs were seen");
  CHECK(refusal(block.store(0)) == "state-invalid calibration: has parts left");
  Member done(0, 1);
  calibrate_all({&done});
  CHECK(refusal(done.block->store(99)) == "argument-invalid calibration: slot 99 has no tensor");
}

TEST_CASE("BoundBlockCalibrator: inputs of other members that are not finite are refused") {
  Member member(0, 1);
  const List<Region> regions = taken(member.block->expect(0, "[4608]"));
  REQUIRE(regions.size() > 0);
  for (const Region region : regions)
    for (size_t at = 0; at < region.size(); at += 4)
      std::memcpy(const_cast<uint8_t*>(region.data()) + at, "\0\0\xC0\x7F", 4);
  CHECK(refusal(member.block->show(false)).find("value-not-finite ") == 0);
}

}  // namespace
}  // namespace wasmquant::testing
