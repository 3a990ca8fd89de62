// A multiple alignment in digital form, with the annotation used in model building.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/alphabet.hpp"
#include "model/hmm.hpp"

namespace hmmjit {

/// Value type.
struct MultipleAlignment {
  std::string name;  ///< empty: none given
  std::optional<std::string> accession, description;
  const Alphabet* alphabet = nullptr;
  std::size_t columns = 0;
  std::vector<std::string> row_names;
  std::vector<std::string> row_accessions, row_descriptions;  ///< one per row; empty: none
  /// [rows x columns] codes, including gap, '*' and '~' (missing).
  std::vector<Residue> residues;
  std::vector<double> weights;  ///< one per row, or none
  /// Annotation of columns, `columns` characters; empty: none. `rf`: reference columns; `mm`: model
  /// mask; `cs`: consensus structure; `sa`: surface accessibility.
  std::string rf, mm, cs, sa;
  /// Cutoffs; -99999 for a domain value that the file lacks.
  std::optional<Cutoff> ga, tc, nc;

  std::size_t rows() const { return row_names.size(); }
  std::span<const Residue> row(std::size_t i) const {
    return std::span(residues).subspan(i * columns, columns);
  }
  std::span<Residue> row(std::size_t i) {
    return std::span(residues).subspan(i * columns, columns);
  }
};

}  // namespace hmmjit
