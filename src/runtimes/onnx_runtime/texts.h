// What people are told of ONNX Runtime and its builds: {} are filled in by text_of and error_at.
#pragma once

namespace wasmquant::onnx_runtime {

inline constexpr char kMisreadsTwoBits[] =
    "{} with codes of 2 bits below a MatMul needs a multiple of 4 outputs, not {}: ONNX Runtime misreads others";
inline constexpr char kFoldsConstants[] = "fold constants first, with ONNX Runtime's quant_pre_process for instance";
inline constexpr char kSlowConvolutions[] =
    "is the first of {} convolutions that round their inputs at run time: onnxruntime-web computes large ones faster "
    "than in float, ONNX Runtime outside browsers slower";

}  // namespace wasmquant::onnx_runtime
