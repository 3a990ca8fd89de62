#include "model/targets.hpp"

#include <stdexcept>
#include <utility>

namespace hmmjit {
namespace {

// C libraries use mmap for allocations of this size: unused pages take no memory, and shrinking the
// vector would only copy it.
constexpr std::size_t kOwnMapping = std::size_t{1} << 25;

constexpr std::size_t kAlignment = 16;  // of a target's residues, as kernels read them

}  // namespace

TargetBlock::TargetBlock() : residues_(1, kPaddingCode) {}

TargetBlock::TargetBlock(TargetStorage storage, std::uint64_t first_index)
    : view_(std::move(storage)), first_index_(first_index) {
  residue_count_ = view_.residue_count;
}

void TargetBlock::clear() {
  view_ = {};
  residues_.assign(1, kPaddingCode);
  text_.clear();
  targets_.clear();
  residue_count_ = first_index_ = 0;
}

TargetView TargetBlock::operator[](std::size_t i) const {
  const Entry& e = entry(i);
  const char* text = (view_.owner ? view_.text : text_.data()) + e.text;
  return {{(view_.owner ? view_.residues : residues_.data()) + e.residues, e.length},
          {text, e.name},
          {text + e.name, e.accession},
          {text + e.name + e.accession, e.description}};
}

int TargetBlock::length(std::size_t i) const { return static_cast<int>(entry(i).length); }

std::size_t TargetBlock::bytes() const {
  if (view_.owner) {
    std::size_t bytes = view_.occupied.size() + view_.entries.size_bytes();
    if (!view_.entries.empty()) {
      const Entry& last = view_.entries.back();
      bytes +=
          last.text - view_.entries.front().text + last.name + last.accession + last.description;
    }
    return bytes;
  }
  return (residues_.size() < kOwnMapping ? residues_.capacity() : residues_.size()) +
         text_.capacity() + targets_.capacity() * sizeof(Entry);
}

void TargetBlock::begin_target(std::string_view name, std::string_view accession,
                               std::string_view description) {
  if (view_.owner != nullptr) throw std::logic_error("a view takes no further target");
  Entry e{residues_.size(), text_.size(), 0, static_cast<std::uint32_t>(name.size()), 0, 0};
  text_.insert(text_.end(), name.begin(), name.end());
  targets_.push_back(e);
  set_text(accession, description);
}

void TargetBlock::set_text(std::string_view accession, std::string_view description) {
  Entry& e = targets_.back();
  text_.resize(e.text + e.name);
  text_.insert(text_.end(), accession.begin(), accession.end());
  text_.insert(text_.end(), description.begin(), description.end());
  e.accession = static_cast<std::uint32_t>(accession.size());
  e.description = static_cast<std::uint32_t>(description.size());
}

void TargetBlock::append(std::span<const Residue> codes) {
  residues_.insert(residues_.end(), codes.begin(), codes.end());
}

void TargetBlock::end_target() {
  Entry& e = targets_.back();
  e.length = static_cast<std::uint32_t>(residues_.size() - e.residues);
  residue_count_ += e.length;
  residues_.push_back(kPaddingCode);
}

void TargetBlock::abandon_target() {
  residues_.resize(targets_.back().residues);
  text_.resize(targets_.back().text);
  targets_.pop_back();
}

void TargetBlock::finish() {
  if (view_.owner == nullptr && residues_.size() < kOwnMapping) *this = packed();
}

TargetBlock TargetBlock::packed() const {
  if (view_.owner != nullptr) return *this;
  struct Arrays {
    std::vector<Residue> residues;
    std::vector<char> text;
    std::vector<Entry> entries;
  };
  static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= kAlignment);
  const auto arrays = std::make_shared<Arrays>();
  arrays->text = text_;
  arrays->entries = targets_;
  const auto stored = [](std::size_t length) {
    return length / kAlignment * kAlignment + kAlignment;  // one byte of padding at least
  };
  std::size_t bytes = kAlignment;
  for (const Entry& e : targets_) bytes += stored(e.length);
  std::vector<Residue>& residues = arrays->residues;
  residues.reserve(bytes);
  residues.assign(kAlignment, kPaddingCode);
  for (Entry& e : arrays->entries) {
    const auto begin = residues_.begin() + static_cast<std::ptrdiff_t>(e.residues);
    e.residues = residues.size();
    residues.insert(residues.end(), begin, begin + e.length);
    residues.resize(e.residues + stored(e.length), kPaddingCode);
  }
  return {{.residues = residues.data(),
           .text = arrays->text.data(),
           .entries = arrays->entries,
           .residue_count = residue_count_,
           .occupied = std::span(residues).subspan(kAlignment),
           .owner = arrays},
          first_index_};
}

}  // namespace hmmjit
