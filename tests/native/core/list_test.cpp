#include "core/list.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

using namespace wasmquant;

TEST_CASE("a list keeps its elements through growth, copies and moves") {
  List<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back(std::to_string(i));  // short strings point into themselves
  CHECK(names.size() == 100);
  CHECK(names.front() == "0");
  CHECK(names.back() == "99");

  List<std::string> copy = names;
  CHECK(copy == names);
  copy[5] = "five";
  CHECK(names[5] == "5");
  const List<std::string> moved = std::move(copy);
  CHECK(moved[5] == "five");
  names = moved;
  CHECK(names == moved);

  List<std::unique_ptr<int>> owners;
  for (int i = 0; i < 9; ++i) owners.emplace_back(std::make_unique<int>(i));
  CHECK(*owners[8] == 8);
}

TEST_CASE("a list is truncated, filled and inserted into") {
  List<int> numbers = {1, 2, 3};
  numbers.resize(5);
  CHECK(numbers == List<int>{1, 2, 3, 0, 0});
  numbers.resize(1);
  numbers.insert(0, 7);
  numbers.insert(2, 9);
  CHECK(numbers == List<int>{7, 1, 9});
  numbers.append(numbers.begin(), numbers.begin());
  numbers.pop_back();
  CHECK(numbers == List<int>{7, 1});
  numbers.clear();
  CHECK(numbers.empty());
  CHECK(List<int>(3) == List<int>{0, 0, 0});
}
