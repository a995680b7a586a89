#include "formats/numpy/npy.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace wasmquant;

namespace {

std::vector<uint8_t> npy_file(std::string header, size_t data, uint8_t version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  bytes += header + std::string(data, '\0');
  return {bytes.begin(), bytes.end()};
}

std::string header_of(const std::string& descr, const std::string& shape, const std::string& order = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }     \n";
}

Result<StoredTensor> npy_read(const std::vector<uint8_t>& file) {
  const auto need = npy::need(file, file.size());
  if (!need) return need.error();
  REQUIRE(*need == 0);
  return npy::read_tensor(file, file.size());
}

void npy_check_refused(const std::vector<uint8_t>& file, ErrorCode code, const char* text) {
  INFO(std::string(text));
  const auto tensor = npy_read(file);
  REQUIRE_FALSE(bool(tensor));
  CHECK(tensor.error().code == code);
  CHECK(tensor.error().message.find(text) != std::string::npos);
}

}  // namespace

TEST_CASE("npy: arrays in C order, of every version") {
  for (const uint8_t version : {uint8_t{1}, uint8_t{2}, uint8_t{3}}) {
    const auto tensor = npy_read(npy_file(header_of("<f4", "(2, 3)"), 24, version));
    REQUIRE(bool(tensor));
    CHECK(tensor->dtype == StorageDtype::F32);
    CHECK(tensor->shape == std::vector<uint64_t>{2, 3});
    CHECK(tensor->end - tensor->begin == 24);
  }
  CHECK(npy_read(npy_file(header_of("|u1", "(5,)"), 5))->dtype == StorageDtype::U8);
  CHECK(npy_read(npy_file(header_of("<f8", "()"), 8))->shape.empty());
  CHECK(npy_read(npy_file(header_of("<f2", "(7,)", "True"), 14))->dtype == StorageDtype::F16);
  CHECK(bool(npy_read(npy_file("{\"shape\":(0,4),\"descr\":\"<i8\",\"fortran_order\":False}", 0))));
}

TEST_CASE("npy: the reader requests the bytes of a header step by step") {
  const std::vector<uint8_t> file = npy_file(header_of("<f4", "(2, 3)"), 24);
  const std::span<const uint8_t> bytes(file);
  CHECK(*npy::need(bytes.first(8), file.size()) == 10);
  CHECK(*npy::need(bytes.first(10), file.size()) == file.size() - 24);
  CHECK_FALSE(bool(npy::read_tensor(bytes.first(20), file.size())));
  for (size_t end = 0; end < file.size(); ++end) CHECK_FALSE(bool(npy::read_tensor(bytes.first(end), end)));
}

TEST_CASE("npy: what is refused, and why") {
  using enum ErrorCode;
  npy_check_refused(npy_file(header_of("|O", "(2,)"), 16), dtype_unsupported, "pickled");
  npy_check_refused(npy_file(header_of(">f4", "(2,)"), 8), dtype_unsupported, "big-endian");
  npy_check_refused(npy_file(header_of("<V2", "(2,)"), 4), dtype_unsupported, "bfloat16");
  npy_check_refused(npy_file(header_of("<U3", "(1,)"), 12), dtype_unsupported, "float32");
  npy_check_refused(npy_file(header_of("<f4", "(2, 3)", "True"), 24), dtype_unsupported, "ascontiguousarray");
  npy_check_refused(npy_file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", 8), dtype_unsupported,
                    "record");
  npy_check_refused(npy_file(header_of("<f4", "(2, 3)"), 20), file_truncated, "need 24 bytes, but 20 follow");
  npy_check_refused(npy_file(header_of("<f4", "(2, 3)"), 25), file_invalid, "need 24 bytes, but 25 follow");
  npy_check_refused(npy_file(header_of("<f4", "(18446744073709551615, 2)"), 8), file_invalid, "2^64");
  npy_check_refused(npy_file(header_of("<f4", "(18446744073709551616,)"), 8), file_invalid, "below 2^64");
  npy_check_refused(npy_file(header_of("<f4", "(-1,)"), 8), file_invalid, "whole number");
  npy_check_refused(npy_file(header_of("<f4", "(2 3)"), 24), file_invalid, "comma");
  npy_check_refused(npy_file(header_of("<f4", "(2)"), 8), file_invalid, "tuple");
  npy_check_refused(npy_file(header_of("<f4", "[2]"), 8), file_invalid, "tuple");
  npy_check_refused(npy_file(header_of("<f4", "(2,)", "__import__('os')"), 8), file_invalid, "True or False");
  npy_check_refused(npy_file("{'descr': '<f4', 'fortran_order': False}", 8), file_invalid, "lacks");
  npy_check_refused(npy_file("{'descr': '<f4', 'descr': '<f4'}", 8), file_invalid, "each once");
  npy_check_refused(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", 8), file_invalid,
                    "nothing more");
  npy_check_refused(npy_file(header_of("<f4", "(2,)") + std::string(10'000, ' '), 8), file_too_large, "10000");
  npy_check_refused(npy_file(header_of("<f4", "(2,)"), 8, 4), file_invalid, "version 4.0");
  std::string many = "(";
  for (int i = 0; i < 65; ++i) many += "1,";
  npy_check_refused(npy_file(header_of("<f4", many + ")"), 4), file_invalid, "64 dimensions");
}
