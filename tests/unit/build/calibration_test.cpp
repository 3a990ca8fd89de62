// The calibration of imported models compared with hmmconvert's, bit for bit: its binary output has
// both the imported model and the six parameters as floats.
#include "build/calibration.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "tests/support/command.hpp"
#include "tests/support/random_profiles.hpp"
#include "tests/support/shared_data.hpp"

namespace hmmjit {
namespace {

class Bytes {
 public:
  explicit Bytes(std::string_view data) : data_(data) {}
  bool empty() const { return data_.empty(); }
  void copy(void* to, std::size_t count) {
    if (count > data_.size()) throw std::runtime_error("binary model ends early");
    std::memcpy(to, data_.data(), count);
    data_.remove_prefix(count);
  }
  template <typename T>
  T value() {
    T v;
    copy(&v, sizeof v);
    return v;
  }
  std::vector<float> floats(std::size_t count) {
    std::vector<float> v(count);
    copy(v.data(), count * sizeof(float));
    return v;
  }
  std::string text(std::size_t count) {
    std::string v(count, '\0');
    copy(v.data(), count);
    return v;
  }
  std::string text() { return text(static_cast<std::size_t>(value<int>())); }

 private:
  std::string_view data_;
};

// One record of the 3/f binary format with its stored calibration.
Hmm read_binary(Bytes& in) {
  if (in.value<std::uint32_t>() != 0xe8ededbau) throw std::runtime_error("not a 3/f binary");
  const int flags = in.value<int>();
  const auto has = [flags](int bit) { return (flags >> bit & 1) != 0; };
  Hmm hmm;
  hmm.M = in.value<int>();
  hmm.alphabet = &alphabet_of(static_cast<AlphabetType>(in.value<int>()));
  const auto K = static_cast<std::size_t>(hmm.alphabet->K);
  const auto M = static_cast<std::size_t>(hmm.M);
  hmm.match.assign(K, 0.0f);
  const auto match = in.floats(M * K);
  hmm.match.insert(hmm.match.end(), match.begin(), match.end());
  hmm.insert = in.floats((M + 1) * K);
  hmm.transition = in.floats((M + 1) * kTransitions);
  hmm.name = in.text();
  if (has(9)) in.text();
  if (has(1)) in.text();
  for (const int column : {2, 17, 16, 3, 13}) {
    if (has(column)) in.text(M + 2);
  }
  in.text();                                            // command log
  in.value<int>(), in.value<float>(), in.value<int>();  // nseq, effn, maxl
  in.text();                                            // date
  if (has(8)) in.text((M + 1) * sizeof(int));
  in.value<std::uint32_t>();
  const auto stats = in.floats(6);
  hmm.calibration = {stats[0], stats[1], stats[2], stats[3], stats[4], stats[5]};
  in.floats(6);
  if (has(14)) in.floats(K);
  return hmm;
}

void expect_same(const Calibration& a, const Calibration& b) {
  EXPECT_EQ(a.msv_mu, b.msv_mu);
  EXPECT_EQ(a.msv_lambda, b.msv_lambda);
  EXPECT_EQ(a.viterbi_mu, b.viterbi_mu);
  EXPECT_EQ(a.viterbi_lambda, b.viterbi_lambda);
  EXPECT_EQ(a.forward_tau, b.forward_tau);
  EXPECT_EQ(a.forward_lambda, b.forward_lambda);
}

TEST(Calibrate, EqualsHmmconvertOnHmmer2Models) {
  HMMJIT_SHARED_OR_SKIP(shared);
  if (!test_support::has_program("hmmconvert")) GTEST_SKIP() << "hmmconvert is not installed";
  int models = 0;
  for (const char* file :
       {"hmm_h2/example.hmm2", "hmm_h2/RREFam.hmm2", "hmm_versions/fn3_h2.hmm"}) {
    const auto path = shared / "data/edge" / file;
    const auto binary = test_support::output_of("hmmconvert -b '" + path.string() + "'");
    ASSERT_TRUE(binary) << path;
    for (Bytes in(*binary); !in.empty() && models < 20; ++models) {
      const Hmm hmm = read_binary(in);
      SCOPED_TRACE(hmm.name);
      expect_same(build::calibrate(hmm).value(), hmm.calibration);
    }
  }
  EXPECT_GE(models, 5);
}

TEST(Calibrate, IsDeterministic) {
  const Hmm hmm = test_support::random_hmm(3, 12);
  const Calibration first = build::calibrate(hmm).value();
  const Calibration other = build::calibrate(test_support::random_hmm(4, 12)).value();
  EXPECT_NE(other.msv_mu, first.msv_mu);
  const Calibration seeded = build::calibrate(hmm, {.seed = 7}).value();
  EXPECT_NE(seeded.msv_mu, first.msv_mu);
  expect_same(build::calibrate(hmm).value(), first);
}

// Every residue gains a factor of 20 at every node: no distribution fits the scores of random
// targets.
TEST(Calibrate, OverflowingScoresCountAsTheLargest) {
  Hmm hmm = test_support::random_hmm(3, 80);
  std::ranges::fill(hmm.match, 1.0f);
  const Calibration calibration = build::calibrate(hmm).value();
  EXPECT_TRUE(std::isfinite(calibration.msv_mu));
  EXPECT_TRUE(std::isfinite(calibration.viterbi_mu));
  EXPECT_GT(calibration.msv_mu, 5.0f);
}

TEST(Calibrate, RefusesTooFewTargets) {
  const auto calibration =
      build::calibrate(test_support::random_hmm(3, 12), {.viterbi_targets = 1});
  ASSERT_FALSE(calibration);
  EXPECT_EQ(calibration.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace hmmjit
