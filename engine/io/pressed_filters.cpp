#include "io/pressed_filters.hpp"

#include <algorithm>

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
  HMMJIT_ASSIGN(ReadOnlyFile file, ReadOnlyFile::open(path + ".h3f"));
  return PressedFilterReader(std::move(file), path + ".h3f");
}

std::unexpected<Error> PressedFilterReader::damaged() const {
  return fail(ErrorCode::kInput, "not a file of hmmpress, or damaged", name_,
              "press the database again with hmmpress -f");
}

Result<Decoder> PressedFilterReader::read(std::size_t size) {
  if (file_.size() < at_ || file_.size() - at_ < size) return damaged();
  if (buffer_.size() < size) buffer_.resize(size);
  HMMJIT_TRY(file_.read(at_, std::span(buffer_).first(size)));
  at_ += size;
  return Decoder(std::string_view(buffer_).substr(0, size));
}

Result<std::optional<PressedFilter>> PressedFilterReader::next() {
  if (at_ == file_.size()) return std::nullopt;
  HMMJIT_ASSIGN(Decoder record, read(sizeof(RecordBegin)));
  const auto begin = record.bytes<RecordBegin>();
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
  HMMJIT_ASSIGN(record, read(name + 1 + sizeof(std::int32_t) + 5 + sizeof(float)));
  filter.name = record.take(name + 1).substr(0, name);
  record.take(sizeof(std::int32_t));  // longest hit of a model of DNA
  bytes.tbm = record.bytes<std::uint8_t>();
  bytes.tec = record.bytes<std::uint8_t>();
  record.take(1);  // tjb of some length
  bytes.scale = record.bytes<float>();
  bytes.base = record.bytes<std::uint8_t>();
  bytes.bias = record.bytes<std::uint8_t>();
  at_ += row(filter.stripes + kExtraStripes);  // the costs of SSV
  const std::size_t msv = row(filter.stripes);
  HMMJIT_ASSIGN(record, read(msv + sizeof(float) * (6 + kMaxBases) + 3 * sizeof(std::int64_t) +
                             sizeof kMagic));
  filter.cost = record.take(msv);
  filter.mu = record.bytes<float>();
  filter.lambda = record.bytes<float>();
  record.take(4 * sizeof(float));  // statistics of Viterbi and Forward scores
  filter.offset = record.bytes<std::uint64_t>();
  record.take(2 * sizeof(std::int64_t) + kMaxBases * sizeof(float));  // other files; composition
  if (record.bytes<std::uint32_t>() != kMagic) return damaged();
  return filter;
}

}  // namespace hmmjit
