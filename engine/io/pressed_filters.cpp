#include "io/pressed_filters.hpp"

#include <algorithm>

#include "core/coding.hpp"
#include "io/hmm_file.hpp"

namespace hmmjit {
namespace {

constexpr std::uint32_t kMagic = 0xb3e6e6f3;  // "3/f" with the top bit of each byte set
constexpr std::size_t kExtraStripes = 17;     // the costs of SSV repeat their first stripes

struct RecordBegin {
  std::uint32_t magic;
  std::int32_t nodes, alphabet, name;
};

}  // namespace

Result<PressedFilterReader> PressedFilterReader::open(const std::string& path) {
  HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(path + ".h3f"));
  return PressedFilterReader(std::move(source));
}

Result<std::optional<PressedFilter>> PressedFilterReader::next() {
  const auto damaged = [&] {
    return fail(ErrorCode::kInput, "not a file of hmmpress, or damaged", input_.name(),
                "press the database again with hmmpress -f");
  };
  input_.skip(std::exchange(record_, 0));
  HMMJIT_ASSIGN(std::string_view read, input_.peek(sizeof(RecordBegin)));
  if (read.empty()) return std::nullopt;
  const auto begin = Decoder(read).bytes<RecordBegin>();
  if (begin.magic != kMagic || begin.nodes < 1 || begin.alphabet < 1 || begin.alphabet > 3 ||
      begin.name < 1 || static_cast<std::size_t>(begin.name) > kLongestModelLine)
    return damaged();
  PressedFilter filter;
  ByteProfile& bytes = filter.bytes;
  filter.alphabet = &alphabet_of(static_cast<AlphabetType>(begin.alphabet));
  bytes.M = begin.nodes;
  bytes.Kp = filter.alphabet->Kp;
  filter.stripes = static_cast<std::size_t>(std::max(2, (bytes.M - 1) / PressedFilter::kLanes + 1));
  const auto row = [&](std::size_t stripes) {
    return static_cast<std::size_t>(bytes.Kp) * stripes * PressedFilter::kLanes;
  };
  const auto name = static_cast<std::size_t>(begin.name);
  const std::size_t ssv = row(filter.stripes + kExtraStripes), msv = row(filter.stripes);
  constexpr std::size_t kFixed = sizeof(RecordBegin) + 1 + sizeof(std::int32_t) + 5 +
                                 sizeof(float) * (1 + 6 + kMaxBases) + 3 * sizeof(std::int64_t) +
                                 sizeof kMagic;
  record_ = kFixed + name + ssv + msv;
  HMMJIT_ASSIGN(read, input_.peek(record_));
  Decoder record(read.substr(0, record_));
  record.take(sizeof begin);
  filter.name = record.take(name + 1).substr(0, name);
  record.take(sizeof(std::int32_t));  // longest hit of a model of DNA
  bytes.tbm = record.bytes<std::uint8_t>();
  bytes.tec = record.bytes<std::uint8_t>();
  record.take(1);  // tjb of some length
  bytes.scale = record.bytes<float>();
  bytes.base = record.bytes<std::uint8_t>();
  bytes.bias = record.bytes<std::uint8_t>();
  record.take(ssv);
  filter.cost = record.take(msv);
  filter.mu = record.bytes<float>();
  filter.lambda = record.bytes<float>();
  record.take(4 * sizeof(float));  // statistics of Viterbi and Forward scores
  filter.offset = record.bytes<std::uint64_t>();
  record.take(2 * sizeof(std::int64_t) + kMaxBases * sizeof(float));  // other files; composition
  if (record.bytes<std::uint32_t>() != kMagic || !record.ok()) return damaged();
  return filter;
}

}  // namespace hmmjit
