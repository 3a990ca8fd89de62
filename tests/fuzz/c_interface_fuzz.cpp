// A search through the C interface with any options, models and targets in memory, and all reports
// of its results: every call returns a status, and every error has a message.
//
// Bytes: 16 of options, then models up to a line "====", then targets.
#include <hmmjit/hmmjit.h>

#include <cstring>

#include "tests/fuzz/entry.hpp"

namespace {

constexpr std::size_t kOptionBytes = 16;
constexpr std::string_view kBetween = "\n====\n";

int32_t checked(int32_t status, hmmjit_error*& error) {
  require((status == HMMJIT_OK) == (error == nullptr));
  require(status != HMMJIT_INTERNAL);
  if (error != nullptr) require(std::strlen(hmmjit_error_message(error)) > 0);
  hmmjit_error_free(error);
  error = nullptr;
  return status;
}

hmmjit_search_options options_of(const std::uint8_t* bytes) {
  hmmjit_search_options o{};
  o.size = sizeof o;
  (void)hmmjit_search_options_init(&o, nullptr);
  const double values[] = {1e-9, 1e-3, 0.5, 1, 10, 1e6, 0, -1};
  const auto value = [&](unsigned n) { return values[n % 8]; };
  o.device = HMMJIT_DEVICE_CPU;
  o.threads = 1;
  if (bytes[0] & 1) o.E = value(bytes[1]);
  if (bytes[0] & 2) o.T = value(bytes[2]);
  if (bytes[0] & 4) o.domE = value(bytes[3]);
  if (bytes[0] & 8) o.incE = value(bytes[4]);
  if (bytes[0] & 16) o.Z = value(bytes[5]);
  if (bytes[0] & 32) o.domZ = value(bytes[6]);
  if (bytes[0] & 64) o.F1 = value(bytes[7]);
  if (bytes[0] & 128) o.F3 = value(bytes[8]);
  o.max_sensitivity = bytes[9] & 1;
  o.bias_filter = (bytes[9] & 2) == 0;
  o.null2 = (bytes[9] & 4) == 0;
  o.keep_alignments = (bytes[9] & 8) == 0;
  o.cutoffs = bytes[10] % 16 == 1 ? bytes[10] / 16 % 5 : 0;
  o.seed = bytes[11];
  o.memory = bytes[12] % 4 == 1 ? 65536u * bytes[13] : 0;
  o.target_count = bytes[14] % 8 == 1 ? static_cast<int64_t>(bytes[15]) - 1 : -1;
  return o;
}

void report_all(const hmmjit_results* results, const hmmjit_search_options& options) {
  hmmjit_error* error = nullptr;
  for (int32_t kind = HMMJIT_REPORT_MAIN; kind <= HMMJIT_REPORT_HTML_PAGE; ++kind) {
    hmmjit_report* report = nullptr;
    hmmjit_text* text = nullptr;
    hmmjit_report_options how{};
    how.size = sizeof how;
    how.alignments = 1;
    how.text_width = 120;
    how.search = &options;
    if (checked(hmmjit_report_create(kind, nullptr, &how, &report, &error), error) != HMMJIT_OK)
      continue;
    for (std::size_t i = 0; i < hmmjit_results_count(results); ++i)
      checked(hmmjit_report_add(report, hmmjit_results_get(results, i), &error), error);
    if (checked(hmmjit_report_complete(report, nullptr, &error), error) == HMMJIT_OK &&
        checked(hmmjit_report_take_text(report, &text, &error), error) == HMMJIT_OK)
      require(std::strlen(hmmjit_text_data(text)) <= hmmjit_text_size(text));
    hmmjit_text_free(text);
    hmmjit_report_free(report);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < kOptionBytes) return 0;
  const hmmjit_search_options options = options_of(data);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + kOptionBytes,
                               size - kOptionBytes);
  const std::size_t between = bytes.find(kBetween);
  const std::string_view model_text = bytes.substr(0, between);
  const std::string_view target_text =
      between == bytes.npos ? std::string_view() : bytes.substr(between + kBetween.size());
  hmmjit_error* error = nullptr;
  hmmjit_models* models = nullptr;
  hmmjit_targets* targets = nullptr;
  hmmjit_results* results = nullptr;
  checked(hmmjit_models_from_memory(model_text.data(), model_text.size(), nullptr, &models, &error),
          error);
  int32_t alphabet = HMMJIT_AMINO;
  if (models != nullptr) {
    hmmjit_model_info info{};
    info.size = sizeof info;
    if (checked(hmmjit_models_get(models, 0, &info, &error), error) == HMMJIT_OK)
      alphabet = info.alphabet;
  }
  checked(hmmjit_targets_from_memory(target_text.data(), target_text.size(), alphabet, nullptr,
                                     nullptr, &targets, &error),
          error);
  constexpr std::uint64_t kMostResidues = 20000;
  if (models != nullptr && targets != nullptr && hmmjit_models_count(models) < 4 &&
      hmmjit_targets_residues(targets) < kMostResidues) {
    checked(hmmjit_search(models, targets, &options, nullptr, &results, &error), error);
    if (results != nullptr) report_all(results, options);
  }
  hmmjit_results_free(results);
  hmmjit_targets_free(targets);
  hmmjit_models_free(models);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::string seed(kOptionBytes, '\0');
  return {seed.append("HMMER3/f\n")};
}

std::vector<std::string> fuzz_folders() { return {}; }
