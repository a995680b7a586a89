// The index of a model's files, fed header by header. Contract: BoundModelIndex of web/lib/engine/module.ts.
#pragma once
#include <string>

#include "marshal.h"
#include "pipeline/model_index/model_index.h"

namespace wasmquant::bindings {

class BoundModelIndex : Counted {
 public:
  uint32_t add_file(std::string name, double bytes) {
    return index_.add_file(std::move(name), static_cast<uint64_t>(bytes));
  }
  std::string feed(uint32_t file, Address bytes, uint32_t length);
  std::string read_shard_map(std::string text);
  std::string missing_parts() const;
  std::string finish();
  std::string tensors(uint32_t first, uint32_t last) const { return ok_text(index_.tensors_json(first, last)); }
  std::string layer_values() const;
  std::string added_outputs(std::string names);
  std::string set_inline_bytes(uint32_t tensor, Address bytes, uint32_t length) {
    return reply(index_.set_inline_bytes(tensor, std::string(pointer<const char>(bytes), length)));
  }
  std::string metadata_array(std::string key) const;
  std::string pretokenizer(std::string name) const;
  std::string sentence_modules() const;
  void strip_prefixes() { index_.strip_prefixes(); }
  void set_sibling_file(std::string name, Address bytes, uint32_t length) {
    index_.set_sibling_file(std::move(name), std::string(pointer<const char>(bytes), length));
  }
  const ModelIndex& index() const noexcept { return index_; }

 private:
  ModelIndex index_;
  std::string outputs_;
};

}  // namespace wasmquant::bindings
