// Faults, each with what has to catch it: a source patch, which replaces `find`, a text that the file has once, by `put`. `by`: 'seams', the
// random cases of npm run test:seams, or a test file that runs in their place.

const packing = 'src/packing/int32_words.cpp';
const words = 'src/tools/gptq_awq/transposed_words.cpp';
const report = 'web/lib/pool/report.ts';

// Rows that end inside a word, and NVFP4, are rare among random cases.
const packedRows = 'tests/node/outputs/packed_rows.test.mjs';

/** {name: [file, find, put, by]}; names are what `npm run test:mutations -- NAME` takes. */
export const faults = {
  // Codes.
  'awq-nibble-order': [
    packing,
    'if (order == WordOrder::order) return pack_rows<4>(',
    'if (order == WordOrder::order || columns != 0) return pack_rows<4>(',
    'seams',
  ],
  'sign-of-symmetric-codes': [
    packing,
    'kPackRows[bits - 2](codes, rows, static_cast<size_t>(columns), offset, words);',
    'kPackRows[bits - 2](codes, rows, static_cast<size_t>(columns), bits == 4 ? 0 : offset, words);',
    packedRows,
  ],
  'last-column-of-odd-rows': [
    packing,
    'pack_run<Bits>(codes, columns, offset, reinterpret_cast<uint8_t*>(words));',
    'pack_run<Bits>(codes, columns - (columns % 8 != 0), offset, reinterpret_cast<uint8_t*>(words));',
    packedRows,
  ],
  'zero-point-of-version-1': [
    words,
    'layout.zero_offset = dtype.is_signed ? -1 : 0;',
    'layout.zero_offset = 0;',
    'seams',
  ],
  // Scales.
  'transposed-scales': [
    'src/checkpoint/layout/tile_scales.cpp',
    'if (layout.column_tiles()) return {count / layout.rows, layout.rows, true};',
    'if (layout.column_tiles()) return {count / layout.rows, layout.rows, false};',
    'seams',
  ],
  'scale-of-last-group': [
    'src/checkpoint/layout/tile_scales.cpp',
    'storage.store(q[m.internal(i)].scale, out',
    'storage.store(q[m.internal(m.columns > 1 && i % m.columns + 1 == m.columns ? i - 1 : i)].scale, out',
    'seams',
  ],
  'exponent-of-mx': [
    'src/numeric/e8m0.h',
    'return static_cast<uint8_t>(exponent > 254 ? 254 : exponent);',
    'return static_cast<uint8_t>(exponent > 253 ? 254 : exponent + 1);',
    'seams',
  ],
  'second-scale-not-inverse': [
    'src/checkpoint/layout/tile_scales.cpp',
    'if (!layout.reciprocal_second_scale) return second_scale;',
    'if (!layout.reciprocal_second_scale || second_scale > 0) return second_scale;',
    packedRows,
  ],
  'nan-not-seen': [
    'src/pipeline/calibration/activation_calibration.cpp',
    'if (const int64_t index = kernels::find_non_finite(x); index >= 0)',
    'if (const int64_t index = kernels::find_non_finite(x); index < -1)',
    'tests/node/calibration/activations_refused.test.mjs',
  ],
  // Groups of reordered columns.
  'group-index-not-read': [
    'src/tools/gptq_awq/stored/packed_words_source.cpp',
    'const bool is_indexed = is_indexed_ || (format_ == "gptq" && tensor_of(model, weight.layer, "g_idx") != nullptr);',
    'const bool is_indexed = is_indexed_ && scales == nullptr;',
    'tests/node/sources/gptq_sources.test.mjs',
  ],
  'act-order-index-in-file-order': [
    'src/pipeline/session/store_modified_weight.cpp',
    'std::memcpy(slices[c].data(), index.data(), index.size_bytes());',
    'for (uint32_t k = 0; k < index.size(); ++k) {\n        const auto group = static_cast<uint32_t>(k / layout.granularity.block);\n        std::memcpy(slices[c].data() + 4 * k, &group, 4);\n      }',
    'tests/node/calibration/act_order.test.mjs',
  ],
  // Names, configs, files.
  'bits-in-config': [
    'src/tools/compressed_tensors/compressed_tensors_arguments.cpp',
    'out.set("num_bits", static_cast<int64_t>(dtype.bits));',
    'out.set("num_bits", static_cast<int64_t>(dtype.bits == 4 ? 8 : dtype.bits));',
    'seams',
  ],
  'tied-head-in-config': [
    'src/tools/quark/quark.cpp',
    'exported.push_back({head, "Linear", nullptr});',
    'if (head.empty()) exported.push_back({head, "Linear", nullptr});',
    'seams',
  ],
  'tensor-not-in-index': [
    'src/formats/safetensors/safetensors_index.cpp',
    '    map += &entry == tensor_to_file.data() ?',
    '    if (&entry == &tensor_to_file.back()) continue;\n    map += &entry == tensor_to_file.data() ?',
    'seams',
  ],
  'total-of-index': [
    'src/formats/safetensors/safetensors_index.cpp',
    'const std::string total = text_of("{}", total_bytes);',
    'const std::string total = text_of("{}", total_bytes + 8);',
    'seams',
  ],
  'carried-file-left-behind': ['web/lib/io/carried_files.ts', '|jinja2?|py|', '|py|', 'seams'],
  'carried-file-cut-short': [
    'web/lib/run/sidecar_files.ts',
    'const bytes = new TextEncoder().encode(text);',
    'const bytes = new TextEncoder().encode(text.replace(\'"num_hidden_layers"\', \'"num_layers"\'));',
    'seams',
  ],
  // Experts and heads.
  'expert-order': [
    'src/families/expert_weights.cpp',
    'matrix.first = e * rows * columns +',
    'matrix.first = (experts - 1 - e) * rows * columns +',
    'seams',
  ],
  'order-of-decoded-experts': [
    'src/pipeline/model_index/expert_tensors.cpp',
    '*tensor.quantized, e, experts.experts)',
    '*tensor.quantized, experts.experts - 1 - e, experts.experts)',
    'tests/node/sources/quantized_sources.test.mjs',
  ],
  'gate-and-up-swapped': [
    'src/families/expert_weights.cpp',
    'std::string(half == 0 ? gate : up);',
    'std::string(half != 0 || halves == 1 ? gate : up);',
    'seams',
  ],
  'expert-importance': [
    'src/pipeline/session/ggml_encoder.cpp',
    'importance.data() + expert * columns',
    'importance.data() + 0 * expert * columns',
    'tests/node/gguf/expert_importance.test.mjs',
  ],
  'rows-of-heads': [
    'src/gguf_conversion/tensor_mapper.cpp',
    'to.rearrangement = Rearrangement::interleave;',
    'to.rearrangement = kind == TensorKind::key ? Rearrangement::interleave : to.rearrangement;',
    'seams',
  ],
  'minimum-of-k-types': [
    'src/kernels/ggml/ggml_super_blocks.cpp',
    'minimum[at + i] = -r.minimum[i];',
    'minimum[at + i] = -r.minimum[i == 0 ? 0 : i - 1];',
    'tests/conformance/conformance.mjs',
  ],
  'tensors-of-gguf-parts': [
    'src/formats/gguf/gguf_split.cpp',
    'static_cast<int32_t>(tensor_count)',
    'static_cast<int32_t>(tensor_count - 1)',
    'seams',
  ],
  // Workers and runs.
  'joined-weight-loses-small-ones': [
    'web/lib/pool/job_queue.ts',
    'if ((isLarge || isFull) && small.length > 0) break;',
    'if (isFull && small.length > 0) break;',
    'tests/node/runs/job_queue.test.mjs',
  ],
  'rows-across-workers': [
    'web/lib/pool/job_queue.ts',
    'const merged = ordered.length === 1 && ordered[0] ? ordered[0] : item.merge(ordered);',
    'const merged = ordered[0] ?? item.merge(ordered);',
    'tests/node/runs/run.test.mjs',
  ],
  'resume-without-errors': [
    'web/lib/run/resume.ts',
    'for (const [task, error] of note) errors.set(task, errorOfText(error));',
    'for (const [task, error] of note) errors.set(task + 1, errorOfText(error));',
    'tests/node/runs/resume.test.mjs',
  ],
  'changed-file-resumed': [
    'web/lib/io/node_journal.ts',
    '(await digestOf(path)) === sha256;',
    "(await digestOf(path)) !== '' && sha256 !== '';",
    'tests/node/runs/resume.test.mjs',
  ],
  'parts-in-subfolders': [
    'web/lib/run/node_merge.ts',
    'if (!isInside(file))',
    "if (!isInside(file) || file.includes('/'))",
    'seams',
  ],
  'stale-digest-in-reuse': [
    'web/lib/run/reuse.ts',
    'if (report.identity?.library !== library || report.identity.tasks !== tasks)',
    'if (report.identity?.library !== library || report.identity.tasks.length !== tasks.length)',
    'tests/node/runs/reuse.test.mjs',
  ],
  // Figures.
  'energy-of-sqnr': [report, '10 * Math.log10(xx / dd)', '10 * Math.log10(this.#yy / dd)', 'seams'],
  'largest-error-of-last-unit': [
    report,
    'this.#maxAbs = Math.max(this.#maxAbs, maxAbs);',
    'this.#maxAbs = maxAbs;',
    'seams',
  ],
  'cosine-of-products': [report, '(xx + yy - dd) / 2 /', '(xx + yy + dd) / 2 /', 'seams'],
  'bytes-after': [
    'src/pipeline/plan_output/plan_json.cpp',
    'out.set("bytesAfter", after);',
    'out.set("bytesAfter", after - after + weight_bytes);',
    'seams',
  ],
  'bits-per-weight': [
    'src/pipeline/plan/output_planner.cpp',
    'plan_.quantized_bytes += planned.bytes_after;',
    'plan_.quantized_bytes += planned.bytes_after - (planned.outputs().size() > 1 ? planned.bytes_after / 9 : 0);',
    'seams',
  ],
  'coverage-of-copies': [
    'src/pipeline/plan/coverage.cpp',
    'if (is_quantized(planned)) {',
    'if (is_quantized(planned) && !planned.task.is_copy) {',
    'seams',
  ],
  // What is said of the files.
  'load-lines-of-another-runtime': [
    'web/present/runtimes/load_lines.ts',
    'hasGraph ? onnxTexts(path)',
    'hasGraph === false ? onnxTexts(path)',
    'tests/node/cli/load_lines.test.mjs',
  ],
};
