// json::Value from events, for listeners that keep parts of a text as trees.
#pragma once
#include "core/json_events.h"
#include "core/list.h"

namespace wasmquant::json {

/// Takes the events of one JSON value. Errors: json-invalid with a JSON pointer, for duplicate keys in strict grammar.
class TreeBuilder final : public Listener {
 public:
  explicit TreeBuilder(Grammar grammar = Grammar::strict) : grammar_(grammar) {}
  Status on(const Event& event) override;
  Value& root() noexcept { return root_; }

 private:
  Value* add(Value value);
  Error duplicate_error(size_t index) const;

  Grammar grammar_;
  Value root_;
  List<Value*> open_;  // containers not yet closed, outermost first
};

}  // namespace wasmquant::json
