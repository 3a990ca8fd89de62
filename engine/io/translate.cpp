#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "io/translate.cpp"
#include <hwy/foreach_target.h>
// The lines above include this file once per instruction set.
#include <hwy/highway.h>

#include "core/simd_targets.hpp"
#include "io/sequence_parsing.hpp"
#include "io/translate.hpp"

// Other instruction sets are not faster.
#undef HMMJIT_PARSING_TARGET
#if HWY_TARGET == HWY_STATIC_TARGET || HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || \
    HWY_TARGET == HWY_AVX3
#define HMMJIT_PARSING_TARGET 1
#else
#define HMMJIT_PARSING_TARGET 0
#endif

#if HMMJIT_PARSING_TARGET
HWY_BEFORE_NAMESPACE();
namespace hmmjit::sequence_parsing {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Translates runs of letters one vector at a time, and the characters between them (mostly line
// ends) with the full table. One-byte vectors (HWY_SCALAR, for processors without SSE4 or AES)
// cannot look up a table of 16 bytes.
std::size_t translate_vector(const TranslationTable& table, const char* in, std::size_t count,
                             Residue* out, std::size_t* written) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t N = hn::Lanes(d);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(in);
  // A table of 32 entries needs two 16-byte shuffles; each 16-byte block holds a copy of each half.
  const hn::Full128<std::uint8_t> half;
  const auto low = hn::LoadDup128(d, table.letter.data());
  const auto high = hn::LoadDup128(d, table.letter.data() + hn::Lanes(half));
  const auto not_plain = hn::Set(d, TranslationTable::kNotPlain);
  std::size_t i = 0;
  Residue* o = out;
  while (true) {
    if (HWY_TARGET != HWY_SCALAR && i + N <= count) {
      const auto v = hn::LoadU(d, bytes + i);
      const auto index = hn::And(v, hn::Set(d, 0x1f));
      const auto in_low = hn::TableLookupBytes(low, hn::And(v, hn::Set(d, 0x0f)));
      const auto in_high = hn::TableLookupBytes(high, hn::And(v, hn::Set(d, 0x0f)));
      const auto is_low = hn::Eq(hn::And(index, hn::Set(d, 0x10)), hn::Zero(d));
      const auto code = hn::IfThenElse(is_low, in_low, in_high);
      // Folded to lower case, a letter is at most 25 above 'a'.
      const auto rank = hn::Sub(hn::Or(v, hn::Set(d, 0x20)), hn::Set(d, 'a'));
      const auto letter = hn::Eq(hn::Min(rank, hn::Set(d, 25)), rank);
      const auto plain = hn::AndNot(hn::Eq(code, not_plain), letter);
      hn::StoreU(code, d, o);
      const std::intptr_t stop = hn::FindFirstTrue(d, hn::Not(plain));
      if (stop < 0) {
        i += N;
        o += N;
        continue;
      }
      i += static_cast<std::size_t>(stop);
      o += stop;
    }
    if (i >= count) break;
    const std::uint8_t code = table.code[bytes[i]];
    if ((code & kSpecial) != 0) break;
    *o = code;
    o += (code & kIgnored) == 0;
    ++i;
  }
  *written = static_cast<std::size_t>(o - out);
  return i;
}

std::size_t find_line_end_vector(const char* in, std::size_t count) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t N = hn::Lanes(d);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(in);
  std::size_t i = 0;
  for (; i + N <= count; i += N) {
    const auto v = hn::LoadU(d, bytes + i);
    const auto end = hn::Or(hn::Eq(v, hn::Set(d, '\n')), hn::Eq(v, hn::Set(d, '\r')));
    const std::intptr_t at = hn::FindFirstTrue(d, end);
    if (at >= 0) return i + static_cast<std::size_t>(at);
  }
  while (i < count && bytes[i] != '\n' && bytes[i] != '\r') ++i;
  return i;
}

std::size_t count_lines_vector(const char* in, std::size_t count, char end) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t N = hn::Lanes(d);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(in);
  const auto ends = hn::Set(d, static_cast<std::uint8_t>(end));
  std::size_t i = 0, lines = 0;
  for (; i + N <= count; i += N) {
    lines += hn::CountTrue(d, hn::Eq(hn::LoadU(d, bytes + i), ends));
  }
  for (; i < count; ++i) lines += in[i] == end;
  return lines;
}

ParsingKernels parsing_kernels() {
  return {translate_vector, find_line_end_vector, count_lines_vector};
}

}  // namespace HWY_NAMESPACE
}  // namespace hmmjit::sequence_parsing
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace hmmjit::sequence_parsing {

namespace {

std::vector<ParsingKernels> kernels_of_this_machine() {
  [[maybe_unused]] const std::int64_t supported = supported_simd_targets();
  std::vector<ParsingKernels> sets;
#if (HWY_TARGETS & HWY_AVX3) && HWY_STATIC_TARGET != HWY_AVX3
  if (supported & HWY_AVX3) sets.push_back(N_AVX3::parsing_kernels());
#endif
#if (HWY_TARGETS & HWY_AVX2) && HWY_STATIC_TARGET != HWY_AVX2
  if (supported & HWY_AVX2) sets.push_back(N_AVX2::parsing_kernels());
#endif
#if (HWY_TARGETS & HWY_SSE4) && HWY_STATIC_TARGET != HWY_SSE4
  if (supported & HWY_SSE4) sets.push_back(N_SSE4::parsing_kernels());
#endif
  sets.push_back(HWY_STATIC_DISPATCH(parsing_kernels)());
  return sets;
}

}  // namespace

const std::vector<ParsingKernels>& parsing_kernel_sets() {
  static const std::vector<ParsingKernels> sets = kernels_of_this_machine();
  return sets;
}

TranslationTable::TranslationTable(const std::array<std::uint8_t, 256>& classes) : code(classes) {
  letter.fill(kNotPlain);
  for (std::size_t i = 1; i <= 26; ++i) {
    std::uint8_t upper = code[0x40 + i], lower = code[0x60 + i];
    if (upper == lower && (upper & (kIgnored | kSpecial)) == 0) letter[i] = upper;
  }
}

std::size_t translate(const TranslationTable& table, const char* in, std::size_t count,
                      Residue* out, std::size_t* written) {
  return parsing_kernel_sets().front().translate(table, in, count, out, written);
}

std::size_t find_line_end(const char* in, std::size_t count) {
  return parsing_kernel_sets().front().find_line_end(in, count);
}

std::size_t count_lines(const char* in, std::size_t count, char end) {
  return parsing_kernel_sets().front().count_lines(in, count, end);
}

}  // namespace hmmjit::sequence_parsing
#endif
