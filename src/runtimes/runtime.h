// The runtimes that read what is written, as people are told of them: rows of runtimes.def. What a loader reads of a checkpoint is in
// runtimes/loaders.
#pragma once
#include <string_view>

namespace wasmquant::runtimes {

/// One runtime. Lists are separated by spaces.
struct Runtime {
  std::string_view id, title;
  std::string_view install;  // the command; empty if it is no package
  std::string_view formats;  // that it reads, the usual one first
  std::string_view presets;  // of a curve, seen to load there (formats.md); empty: a curve is not for it
};

/// One choice of the page: where a result will run.
struct Place {
  std::string_view id;
  std::string_view title;  // empty: the titles of its runtimes
  std::string_view runtimes, formats;
};

/// What people are told of an output format.
struct FormatText {
  std::string_view name, title;  // the title as its runtimes write it
  std::string_view description;  // a sentence that helps to choose it; empty: it is not offered where there is a list
  std::string_view packages;     // what pip has to install for transformers to load it; empty: not known
  std::string_view note;         // a sentence on what reads it; may be empty
};

inline constexpr std::string_view kGgufPresets = "q8_0 q6_k q5_k_m q4_k_m iq4_xs q3_k_m q2_k";
inline constexpr std::string_view kOnnxPresets =
    "int8 int8_per_tensor uint4_wo_32 int4_wo_32 int4_wo_64 int4_wo_128 int4_wo_per_channel";
#define WASMQUANT_PACKED_PRESETS "int8 fp8_per_channel int4_wo_32 int4_wo_64 int4_wo_128 nvfp4 mxfp4 "

inline constexpr Runtime kRuntimes[] = {
#define WASMQUANT_RUNTIME(id, title, install, formats, presets) {id, title, install, formats, presets},
#include "runtimes/runtimes.def"
};

inline constexpr Place kPlaces[] = {
#define WASMQUANT_PLACE(id, title, runtimes, formats) {id, title, runtimes, formats},
#include "runtimes/runtimes.def"
};

inline constexpr FormatText kFormatTexts[] = {
#define WASMQUANT_FORMAT_TEXT(name, title, description, packages, note) {name, title, description, packages, note},
#include "runtimes/runtimes.def"
};

/// The text of an output format, or null.
constexpr const FormatText* text_named(std::string_view format) noexcept {
  for (const FormatText& text : kFormatTexts)
    if (text.name == format) return &text;
  return nullptr;
}

}  // namespace wasmquant::runtimes
