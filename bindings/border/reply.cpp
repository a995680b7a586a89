#include "border/reply.h"

#include <limits>
#include <vector>

namespace wasmquant::bindings {
namespace {

/// Of the last reply and the last error.
struct Replies {
  std::vector<double> numbers;
  std::string text, error;
};
Replies& replies() {
  static Replies instance;
  return instance;
}

class Numbers {
 public:
  Numbers() : numbers_(replies().numbers) { numbers_.assign(1, 0); }
  template <class... T>
  void add(T... values) {
    (numbers_.push_back(static_cast<double>(values)), ...);
  }
  void add_region(Region region) { add(reinterpret_cast<Address>(region.data()), region.size()); }
  Address address() {
    numbers_.front() = static_cast<double>(numbers_.size() - 1);
    return reinterpret_cast<Address>(numbers_.data());
  }

 private:
  std::vector<double>& numbers_;
};

Address failed(const Error& error) {
  keep(error);
  return 0;
}

double no_number(const Error& error) {
  keep(error);
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

void keep(const Error& error, const List<Diagnostic>& diagnostics) {
  json::Value body;
  body.set("code", name_of(error.code));
  body.set("where", error.where);
  body.set("message", error.message);
  if (!diagnostics.empty()) body.set("diagnostics", to_json(diagnostics));
  replies().error = json::write(body);
}

std::string take_error() { return std::exchange(replies().error, {}); }

bool reply(const Status& status) {
  if (!status) keep(status.error());
  return bool(status);
}

double reply(const Result<bool>& result) { return result ? *result : no_number(result.error()); }
double reply(const Result<double>& result) { return result ? *result : no_number(result.error()); }

std::string reply(const json::Value& value) { return json::write(value); }
std::string reply(JsonText&& written) { return std::move(written.text); }

std::string reply(const Result<json::Value>& result) {
  if (result) return json::write(*result);
  keep(result.error());
  return {};
}

Address reply(const List<TileRead>& reads) {
  Numbers out;
  for (const TileRead& read : reads)
    out.add(read.part, read.file, read.begin, read.row_bytes, read.stride, read.rows,
            reinterpret_cast<Address>(read.pointer));
  return out.address();
}

Address reply(const Result<List<TileRead>>& result) { return result ? reply(*result) : failed(result.error()); }

Address reply(const Result<TileResult>& result) {
  if (!result) return failed(result.error());
  Numbers out;
  out.add(result->sums.size());
  for (const kernels::ErrorSums& unit : result->sums)
    out.add(unit.signal, unit.quantized, unit.noise, unit.max_abs, unit.count, unit.x_not_finite, unit.y_not_finite);
  for (const TileWrite& write : result->writes)
    out.add(write.file, write.offset, reinterpret_cast<Address>(write.pointer), write.bytes);
  return out.address();
}

Address reply(std::span<const Region> regions) {
  Numbers out;
  for (const Region region : regions) out.add_region(region);
  return out.address();
}

Address reply(const Result<List<Region>>& result) { return result ? reply(*result) : failed(result.error()); }

Address reply(const Result<Parts>& result) {
  if (!result) return failed(result.error());
  json::Value document;
  document.set("facts", result->facts);
  document.set("names", json::Array(result->names.begin(), result->names.end()));
  std::string& text = replies().text;
  text = json::write(document);
  Numbers out;
  out.add_region(region_of(text));
  for (const Region region : result->regions) out.add_region(region);
  return out.address();
}

}  // namespace wasmquant::bindings
