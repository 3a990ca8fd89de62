// Options with the defaults that hmmjit.h tells; made by generate.py, not by hand.
#pragma once

#include <limits>

#include "hmmjit/hmmjit.h"

// clang-format off
namespace hmmjit_defaults {
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr hmmjit_cache_settings kCacheSettings = {
  .size = sizeof(hmmjit_cache_settings), .directory = nullptr, .system_directory = {}, .mode = -1,
  .allow_group = 0, .max_bytes = 0, .max_memory_bytes = 0};
inline constexpr hmmjit_search_options kSearchOptions = {
  .size = sizeof(hmmjit_search_options), .E = 10, .domE = 10, .incE = 0.01, .incdomE = 0.01,
  .T = kNaN, .domT = kNaN, .incT = kNaN, .incdomT = kNaN, .cutoffs = 0, .max_sensitivity = 0,
  .Z = 0, .domZ = 0, .F1 = 0.02, .F2 = 0.001, .F3 = 0.00001, .bias_filter = 1, .null2 = 1,
  .seed = 42, .keep_alignments = 1, .threads = 0, .device = 0, .memory = 0, .vram = 0,
  .gpus = nullptr, .gpu_count = 0, .verify = -1, .reserved = {}, .cache = nullptr,
  .first_target = nullptr, .target_count = -1, .missing_cutoffs = 0, .reserved_too = {},
  .cutoff_table = nullptr, .cutoff_count = 0};
inline constexpr hmmjit_nhmmer_options kNhmmerOptions = {
  .size = sizeof(hmmjit_nhmmer_options), .search = nullptr, .strands = 0, .window_length = 0,
  .window_beta = 0, .B1 = 110, .B2 = 240, .B3 = 1000, .block_length = 262144};
inline constexpr hmmjit_report_options kReportOptions = {
  .size = sizeof(hmmjit_report_options), .prefer_accession = 0, .alignments = 1,
  .text_width = 120, .reserved = {}, .search = nullptr, .page_title = nullptr, .page_targets = 0};
inline constexpr hmmjit_build_options kBuildOptions = {
  .size = sizeof(hmmjit_build_options), .matrix = nullptr, .matrix_file = nullptr,
  .gap_open = kNaN, .gap_extend = kNaN, .single_rows_by_matrix = 0, .columns = 0,
  .least_occupied = 0.5, .fragment = 0.5, .weights = 0, .effective = 0, .weight_identity = 0.62,
  .effective_number = 0, .relative_entropy = kNaN, .total_entropy = 45,
  .effective_identity = 0.62, .prior = 0, .most_insertions = 0, .msv_length = 200,
  .msv_targets = 200, .viterbi_length = 200, .viterbi_targets = 200, .forward_length = 100,
  .forward_targets = 200, .tail_mass = 0.04, .seed = 42, .threads = 0, .alphabet = -1,
  .window_length = 0, .window_beta = 1e-7, .cancellation = nullptr};
inline constexpr hmmjit_iteration_options kIterationOptions = {
  .size = sizeof(hmmjit_iteration_options), .rounds = 5, .prefer_accession = 0, .alignments = 1,
  .text_width = 120, .a3m = 0, .reserved = {}, .search = nullptr, .build = nullptr,
  .alignment_file = nullptr};
}  // namespace hmmjit_defaults
