// Compares all quantised tables with those of hmmpress, byte for byte. In its two files the striped
// tables follow text of varying length, so they are read from the end.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "model/profile.hpp"
#include "tests/support/command.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/random_profiles.hpp"
#include "tests/support/shared_data.hpp"

namespace hmmjit {
namespace {

namespace fs = std::filesystem;
using test_support::ModelKind;

class FromEnd {
 public:
  explicit FromEnd(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
  }
  template <typename T>
  std::vector<T> take(std::size_t count) {
    const std::size_t size = count * sizeof(T);
    if (size > bytes_.size()) throw std::runtime_error("pressed file is too short");
    std::vector<T> values(count);
    std::memcpy(values.data(), bytes_.data() + bytes_.size() - size, size);
    bytes_.resize(bytes_.size() - size);
    return values;
  }
  template <typename T>
  T take() {
    return take<T>(1)[0];
  }

 private:
  std::vector<char> bytes_;
};

// Value of node k (from 1) in a table striped over vectors of `lanes`.
struct Striping {
  Striping(int M, int lanes_) : lanes(lanes_), Q(std::max(2, (M - 1) / lanes_ + 1)) {}
  std::size_t at(int k) const {
    return static_cast<std::size_t>((k - 1) % Q * lanes + (k - 1) / Q);
  }
  std::size_t size() const { return static_cast<std::size_t>(Q) * lanes; }
  int lanes, Q;
};

constexpr int kExtraSsvVectors = 17;  // the SSV rows repeat their start

void compare_msv(const SearchModel& model, const fs::path& path) {
  FromEnd in(path);
  const ByteProfile& bytes = model.bytes;
  const Striping s(bytes.M, 16);
  const auto codes = static_cast<std::size_t>(bytes.Kp);
  in.take<std::uint32_t>();
  in.take<float>(kMaxBases);  // composition
  in.take<std::int64_t>(3);   // file offsets
  in.take<float>(6);          // calibration
  const auto cost = in.take<std::uint8_t>(codes * s.size());
  const std::size_t ssv_row = s.size() + kExtraSsvVectors * 16;
  const auto ssv = in.take<std::int8_t>(codes * ssv_row);
  EXPECT_EQ(in.take<std::uint8_t>(), bytes.bias);
  EXPECT_EQ(in.take<std::uint8_t>(), bytes.base);
  EXPECT_EQ(in.take<float>(), bytes.scale);
  EXPECT_EQ(in.take<std::uint8_t>(), bytes.tjb(400));
  EXPECT_EQ(in.take<std::uint8_t>(), bytes.tec);
  EXPECT_EQ(in.take<std::uint8_t>(), bytes.tbm);
  for (std::size_t x = 0; x < codes; ++x) {
    for (int k = 1; k <= bytes.M; ++k) {
      const std::uint8_t ours = bytes.cost[x * bytes.M + k - 1];
      ASSERT_EQ(cost[x * s.size() + s.at(k)], ours) << "code " << x << " node " << k;
      ASSERT_EQ(ssv[x * ssv_row + s.at(k)], bytes.signed_cost(ours))
          << "code " << x << " node " << k;
    }
  }
}

template <typename T>
void compare_rows(const std::vector<T>& theirs, const Striping& s, const std::vector<T>& ours,
                  std::size_t codes) {
  const std::size_t M = ours.size() / codes;
  for (std::size_t x = 0; x < codes; ++x) {
    for (std::size_t k = 1; k <= M; ++k) {
      ASSERT_EQ(theirs[x * s.size() + s.at(static_cast<int>(k))], ours[x * M + k - 1])
          << "row " << x << " node " << k;
    }
  }
}

// The seven transitions of each vector are adjacent; D->D of all vectors follows.
template <typename T, typename P>
void compare_transitions(const std::vector<T>& theirs, const Striping& s, const P& ours) {
  const std::vector<T>* columns[] = {&ours.entry,  &ours.mm_in,  &ours.im_in, &ours.dm_in,
                                     &ours.md_out, &ours.mi_out, &ours.ii_out};
  for (int k = 1; k <= ours.M; ++k) {
    const std::size_t lane = s.at(k) % static_cast<std::size_t>(s.lanes);
    const std::size_t q = s.at(k) / static_cast<std::size_t>(s.lanes);
    for (std::size_t t = 0; t < 7; ++t) {
      ASSERT_EQ(theirs[(q * 7 + t) * s.lanes + lane], (*columns[t])[k - 1])
          << "transition " << t << " node " << k;
    }
    ASSERT_EQ(theirs[7 * s.size() + s.at(k)], ours.dd_out[k - 1]) << "D->D of node " << k;
  }
}

void compare_profile(const SearchModel& model, const fs::path& path) {
  FromEnd in(path);
  const WordProfile& words = model.words;
  const auto codes = static_cast<std::size_t>(words.Kp);
  const Striping s4(words.M, 4), s8(words.M, 8);
  in.take<std::uint32_t>();
  const int L = in.take<int>();
  in.take<int>();                           // mode
  in.take<float>();                         // number of J states expected
  in.take<float>(6);                        // cutoffs
  const auto specials = in.take<float>(8);  // E, N, J, C: move, loop
  const LengthModel length = length_model(L, true);
  // Initially these are exponentiated logarithms; a search resets them for each target.
  const float expected[] = {length.ec,   length.ej,   length.move, length.loop,
                            length.move, length.loop, length.move, length.loop};
  for (std::size_t i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(specials[i], expected[i]);
  compare_rows(in.take<float>(codes * s4.size()), s4, model.odds.match, codes);
  compare_transitions(in.take<float>(8 * s4.size()), s4, model.odds);

  in.take<float>();  // loop roundoff
  in.take<std::int16_t>();  // bound for ending lazy F early
  EXPECT_EQ(in.take<std::int16_t>(), words.base);
  EXPECT_EQ(in.take<float>(), words.scale);
  const auto word_specials = in.take<std::int16_t>(8);
  const std::int16_t move = words.move(L);
  EXPECT_EQ(word_specials,
            (std::vector<std::int16_t>{words.ec, words.ej, move, 0, move, 0, move, 0}));
  compare_rows(in.take<std::int16_t>(codes * s8.size()), s8, words.match, codes);
  compare_transitions(in.take<std::int16_t>(8 * s8.size()), s8, words);
}

void compare_pressed(const fs::path& source) {
  const test_support::TemporaryFolder folder;
  fs::copy_file(source, folder.path() / "m.hmm");
  ASSERT_TRUE(test_support::output_of("hmmpress '" + folder.file("m.hmm") + "'"));
  const auto models = test_support::read_models(source);
  ASSERT_EQ(models.size(), 1u);
  const auto model = make_search_model(models[0]);
  compare_msv(*model, folder.path() / "m.hmm.h3f");
  compare_profile(*model, folder.path() / "m.hmm.h3p");
}

TEST(PressedTables, RealModels) {
  HMMJIT_SHARED_OR_SKIP(shared);
  if (!test_support::has_program("hmmpress")) GTEST_SKIP() << "hmmpress is not installed";
  for (const char* name :
       {"hmm/hmmer/M1.hmm", "hmm/hmmer/XYPPX.hmm", "hmm/hmmer/20aa.hmm", "hmm/hmmer/fn3.hmm",
        "hmm/hmmer/globins4.hmm", "hmm/hmmer/SMC_N.hmm", "edge/hmm_nucleotide/MADE1.hmm",
        "edge/hmm_nucleotide/ecori.hmm", "edge/hmm_nucleotide/RF00001.hmm"}) {
    SCOPED_TRACE(name);
    compare_pressed(shared / "data" / name);
  }
}

TEST(PressedTables, GeneratedModels) {
  if (!test_support::has_program("hmmpress")) GTEST_SKIP() << "hmmpress is not installed";
  const test_support::TemporaryFolder folder;
  std::uint64_t seed = 7;
  for (const ModelKind kind : test_support::kAllModelKinds) {
    for (const int M : {1, 2, 9, 65, 200}) {
      const Hmm hmm = test_support::random_hmm(++seed, M, kind);
      SCOPED_TRACE(hmm.name);
      compare_pressed(folder.write("m.hmm", test_support::model_text(hmm)));
    }
  }
}

}  // namespace
}  // namespace hmmjit
