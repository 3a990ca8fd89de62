#include "align/model_alignment.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "build/alignment_model.hpp"
#include "domain/alignment.hpp"

namespace hmmjit::align {
namespace {

using build::PathElement;
using build::Step;

}  // namespace

Status check_source(const Hmm& hmm, const MultipleAlignment& alignment) {
  const auto unusable = [&](std::string message) {
    return fail(ErrorCode::kInput, std::move(message), "model " + hmm.name,
                "give the alignment that the model was built from");
  };
  if (!hmm.checksum || hmm.map.empty())
    return fail(ErrorCode::kInput,
                fmt::format("the profile file does not say which {} the model was built from",
                            hmm.checksum ? "columns (MAP)" : "alignment (CKSUM)"),
                "model " + hmm.name, "build the model again, or leave out --mapali");
  if (*hmm.checksum != build::checksum_of(alignment))
    return unusable("the model was built from another alignment");
  int before = 0;
  for (std::size_t k = 1; k < hmm.map.size(); ++k) {
    if (hmm.map[k] <= before || static_cast<std::size_t>(hmm.map[k]) > alignment.columns)
      return unusable("the profile file maps nodes to columns that do not exist");
    before = hmm.map[k];
  }
  return {};
}

build::AlignedRows align_to_model(const Hmm& hmm, const MultipleAlignment* source,
                                  std::span<const TargetView> sequences,
                                  std::span<const SequencePath> paths, bool trimmed) {
  build::ColumnLayout layout(hmm.M, {.all_nodes = true, .trimmed = trimmed});
  std::vector<bool> match(source != nullptr ? source->columns : 0);
  std::vector<PathElement> path;
  const std::size_t source_rows = source != nullptr ? source->rows() : 0;
  if (source != nullptr) {
    for (std::size_t k = 1; k < hmm.map.size(); ++k)
      match[static_cast<std::size_t>(hmm.map[k] - 1)] = true;
  }
  for (std::size_t n = 0; n < source_rows; ++n) {
    find_row_path(*source, n, match, path, true);
    layout.add(path);
  }
  for (const SequencePath& sequence : paths) layout.add(sequence.elements);
  layout.place();

  build::AlignedRows out;
  for (std::size_t n = 0; n < source_rows; ++n) {
    find_row_path(*source, n, match, path, true);
    out.names.push_back(source->row_names[n]);
    out.accessions.push_back(source->row_accessions[n]);
    out.descriptions.push_back(source->row_descriptions[n]);
    out.rows.push_back(layout.row(path, source->row(n), *hmm.alphabet));
    if (!sequences.empty()) out.posteriors.emplace_back();
  }
  build::MeanPosteriors means(hmm.M);
  for (std::size_t n = 0; n < sequences.size(); ++n) {
    const TargetView& sequence = sequences[n];
    out.names.emplace_back(sequence.name);
    out.accessions.emplace_back(sequence.accession);
    out.descriptions.emplace_back(sequence.description);
    std::string codes;
    std::ranges::transform(paths[n].posteriors, std::back_inserter(codes), domain::posterior_code);
    out.rows.push_back(layout.row(paths[n].elements, sequence.residues, *hmm.alphabet, &codes));
    out.posteriors.push_back(std::move(codes));
    for (std::size_t z = 0; z < paths[n].elements.size(); ++z) {
      const PathElement& at = paths[n].elements[z];
      if (at.step == Step::kMatch) means.add(at.k, paths[n].posteriors[z]);
    }
  }
  if (!sequences.empty()) out.mean_posteriors = layout.line(means.codes());
  out.reference = layout.line('x');
  if (!hmm.mm.empty()) {
    std::string mask = hmm.mm;
    mask.back() = '.';  // HMMER does not mask the last node
    out.mask = layout.line(mask);
  }
  return out;
}

}  // namespace hmmjit::align
