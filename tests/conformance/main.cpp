// Runs golden cases through the library:  wasmquant_conformance --golden DIR [--json]
// Every *.json in DIR is a family, named by its file; its cases are done by their op (ops.h). A case passes when all
// its expected tensors were made by the library and agree; what the library cannot do yet is skipped, and counted so.
// Exit: 0 no failure · 1 failures · 2 wrong usage or unreadable files.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include "compare.h"
#include "dialect_case.h"
#include "ops/ggml_ops.h"
#include "ops/ops.h"

namespace conformance {
namespace {

using namespace wasmquant;

enum class Verdict : uint8_t { passed, failed, skipped };
constexpr const char* kVerdicts[] = {"passed", "failed", "skipped"};

struct CaseResult {
  std::string id, op;
  Verdict verdict;
  std::string detail;  // first difference, or why skipped
};

struct Counts {
  uint64_t of[3] = {0, 0, 0};
  void add(Verdict verdict) { ++of[static_cast<size_t>(verdict)]; }
};

struct Family {
  std::string name;
  std::vector<CaseResult> results;
  Counts counts;
};

Result<double> max_input(const GoldenCase& c) {
  double max = 0;
  TRY(x, c.input("x"));
  for (const double v : x.values)
    if (std::isfinite(v)) max = std::max(max, std::abs(v));
  return max;
}

Result<Tensor> expected_tensor(const GoldenCase& c, std::string_view wanted) {
  for (const auto& [role, key] : c.expected())
    if (role == wanted) return c.tensor(key);
  return not_yet("a comparison without expected " + std::string(wanted));
}

// Empty text: everything agrees.
Result<std::string> first_difference(const GoldenCase& c, const Comparison& comparison, const Outputs& outputs) {
  double max = 0;
  if (comparison.absolute_of_max != 0) {
    TRY(found, max_input(c));
    max = found;
  }
  std::string not_produced;
  for (const auto& [role, key] : c.expected()) {
    const auto produced = outputs.find(role);
    if (produced == outputs.end()) {
      not_produced += (not_produced.empty() ? "" : ", ") + role;
      continue;
    }
    TRY(expected, c.tensor(key));
    if (comparison.candidate_slack && role == "max") {
      TRY(errors, expected_tensor(c, "errors"));
      if (const auto text = choice_difference(*comparison.candidate_slack, outputs, expected, errors))
        return role + ": " + *text;
      continue;
    }
    if (const auto text = difference(comparison, produced->second, expected, max)) return role + ": " + *text;
    if (comparison.loss_factor == 0) continue;
    TRY(loss, c.number("loss"));
    if (const auto text = loss_difference(comparison, produced->second, loss)) return role + ": " + *text;
  }
  if (!not_produced.empty()) return not_yet("output " + not_produced);
  return std::string();
}

Result<std::string> run(const GoldenCase& c) {
  const Op op = op_named(c.op());
  if (!op) return not_yet(c.op().empty() ? "a case without op" : "op " + c.op());
  if (c.expected().empty()) return not_yet("no expected tensors");
  const std::optional<Comparison> comparison = comparison_named(c.compare());
  if (!comparison) return not_yet("comparison \"" + c.compare() + "\"");
  TRY(outputs, op(c));
  return first_difference(c, *comparison, outputs);
}

CaseResult judge(std::string id, std::string op, const Result<std::string>& difference) {
  CaseResult result{std::move(id), std::move(op), Verdict::passed, ""};
  if (!difference) {
    const Error& error = difference.error();
    result.verdict = error.code == ErrorCode::not_implemented ? Verdict::skipped : Verdict::failed;
    result.detail = result.verdict == Verdict::skipped
                        ? "not in the library: " + error.message
                        : std::string(name_of(error.code)) + " " + error.where + ": " + error.message;
  } else if (!difference->empty()) {
    result.verdict = Verdict::failed;
    result.detail = *difference;
  }
  return result;
}

Result<Family> run_family(const std::string& folder, const std::string& name) {
  TRY(text, read_file(folder + "/" + name + ".json"));
  TRY(manifest, json::parse(text));
  const json::Value* cases = manifest.find("cases");
  if (!cases || !cases->is_array())
    return Error{ErrorCode::json_invalid, name + ".json", "a manifest has an array \"cases\""};
  const json::Value* source = manifest.find("source");
  TensorFiles tensors(folder);
  Family family{name, {}, {}};
  for (const json::Value& value : cases->items()) {
    const json::Value* file = value.find("file");
    const std::string tensor_file = file ? file->as_string() : name + ".safetensors";
    const GoldenCase c(value, tensor_file, tensors);
    const DialectCase dialect(value, tensor_file, source ? source->as_string() : "", tensors);
    if (value.find("type_id") && !value.find("op")) {
      family.results.push_back(judge(c.id(), "ggml_blocks", run_ggml_case(value, tensor_file, tensors)));
      family.counts.add(family.results.back().verdict);
      continue;
    }
    const bool is_dialect = !dialect.kind().empty() && !value.find("op");
    family.results.push_back(is_dialect ? judge(c.id(), dialect.kind(), run_dialect_case(dialect))
                                        : judge(c.id(), c.op(), run(c)));
    family.counts.add(family.results.back().verdict);
  }
  return family;
}

Result<std::vector<std::string>> families_in(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".json") names.push_back(entry->path().stem().string());
  if (error) return Error{ErrorCode::argument_invalid, folder, error.message()};
  if (names.empty()) return Error{ErrorCode::argument_invalid, folder, "no manifest (*.json) in this folder"};
  std::sort(names.begin(), names.end());
  return names;
}

void print_counts(const std::string& name, const Counts& counts) {
  std::printf("%s: %llu passed, %llu failed, %llu skipped\n", name.c_str(),
              static_cast<unsigned long long>(counts.of[0]), static_cast<unsigned long long>(counts.of[1]),
              static_cast<unsigned long long>(counts.of[2]));
}

void print_text(const std::vector<Family>& families, const Counts& total) {
  for (const Family& family : families)
    for (const CaseResult& result : family.results)
      if (result.verdict == Verdict::failed)
        std::printf("%s %s failed: %s\n", family.name.c_str(), result.id.c_str(), result.detail.c_str());
  for (const Family& family : families) print_counts(family.name, family.counts);
  print_counts("total", total);
}

json::Value json_counts(const Counts& counts) {
  json::Value object;
  for (size_t i = 0; i < 3; ++i) object.set(kVerdicts[i], counts.of[i]);
  return object;
}

void print_json(const std::vector<Family>& families, const Counts& total) {
  json::Array list;
  for (const Family& family : families) {
    json::Array cases;
    for (const CaseResult& result : family.results) {
      json::Value object;
      object.set("id", result.id);
      object.set("op", result.op);
      object.set("result", kVerdicts[static_cast<size_t>(result.verdict)]);
      if (!result.detail.empty()) object.set("detail", result.detail);
      cases.push_back(std::move(object));
    }
    json::Value object;
    object.set("family", family.name);
    object.set("counts", json_counts(family.counts));
    object.set("cases", std::move(cases));
    list.push_back(std::move(object));
  }
  json::Value document;
  document.set("families", std::move(list));
  document.set("total", json_counts(total));
  std::printf("%s\n", json::write(document, 1).c_str());
}

int fail(const std::string& text) {
  std::fprintf(stderr, "%s\n", text.c_str());
  return 2;
}

int run_program(int count, char** arguments) {
  constexpr const char* kUsage = "usage: wasmquant_conformance --golden DIR [--json]";
  std::string folder;
  bool as_json = false;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--json") == 0)
      as_json = true;
    else if (std::strcmp(arguments[i], "--golden") == 0 && i + 1 < count)
      folder = arguments[++i];
    else
      return fail(kUsage);
  }
  if (folder.empty()) return fail(kUsage);
  const auto names = families_in(folder);
  if (!names) return fail(names.error().where + ": " + names.error().message);
  std::vector<Family> families;
  Counts total;
  for (const std::string& name : *names) {
    Result<Family> family = run_family(folder, name);
    if (!family) return fail(name + ".json: " + family.error().where + ": " + family.error().message);
    for (size_t i = 0; i < 3; ++i) total.of[i] += family->counts.of[i];
    families.push_back(std::move(*family));
  }
  as_json ? print_json(families, total) : print_text(families, total);
  return total.of[1] == 0 ? 0 : 1;
}

}  // namespace
}  // namespace conformance

int main(int count, char** arguments) { return conformance::run_program(count, arguments); }
