// Measurements of `hmmjit bench` and `hmmjit tune` as text and JSON.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/bench.hpp"

namespace hmmjit::tools {

class MeasurementTables {
 public:
  /// `prints`: prints a heading now, and a row per added kernel.
  MeasurementTables(const bench::Bench& bench, bool prints);

  std::string summary() const;
  /// The tables of the papers.
  std::string paper() const;
  std::string json() const;

  void add(const bench::Measurement& m);
  void add_generic(const bench::Measurement& m);
  void add_one_core(plan::Stage stage, int model_length, double gcups);
  void add_refusal(std::string text) { refusals_.push_back(std::move(text)); }

  std::uint64_t wrong() const { return wrong_; }
  std::size_t measured() const { return measured_; }
  /// Kernels that could not run.
  std::size_t failed() const { return failed_; }

 private:
  using Key = std::pair<plan::Stage, int>;  // and model length
  std::string heading() const;

  const bench::Bench& bench_;
  const bool prints_;
  std::vector<bench::Measurement> measurements_;
  std::map<Key, bench::Measurement> generic_;
  std::map<Key, double> one_core_;
  std::vector<std::string> refusals_;
  std::uint64_t wrong_ = 0, answers_ = 0;
  std::size_t measured_ = 0, failed_ = 0;
};

}  // namespace hmmjit::tools
