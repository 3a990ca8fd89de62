#include "build/builder.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "build/sequence_model.hpp"
#include "core/text_fields.hpp"
#include "core/threads.hpp"

namespace hmmjit::build {

bool is_model_name(std::string_view name) {
  return !is_blank(name) &&
         std::ranges::none_of(name, [](unsigned char c) { return c < ' ' && c != '\t'; });
}

std::string name_from_file(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  name.resize(std::min(name.rfind('.'), name.size()));
  return path != "-" && is_model_name(name) ? name : "";
}

Result<BuiltModel> Builder::from_alignment(const MultipleAlignment& given,
                                           AlignedRows* rows) const {
  if (single && given.rows() == 1) {
    std::vector<Residue> residues;
    for (const Residue code : given.row(0)) {
      if (code != given.alphabet->gap() && code != given.alphabet->missing())
        residues.push_back(code);
    }
    if (residues.empty())
      return fail(ErrorCode::kInput, "the row holds no residues", "alignment " + given.name,
                  "leave it out");
    HMMJIT_ASSIGN(BuiltModel built, from_sequence(given.row_names[0], residues));
    built.effective_sequences = 1.0f;
    return built;
  }
  HMMJIT_ASSIGN(BuiltModel built, build_from_alignment(given, alignment, rows));
  HMMJIT_TRY(calibrate_and_limit(built.hmm));
  apply_mask(built.hmm);
  // Last: hmmbuild's statistics and composition are those before the change.
  if (open || extend)
    set_gap_costs(built.hmm, open ? &*open : nullptr, extend ? &*extend : nullptr);
  return built;
}

Result<BuiltModel> Builder::from_sequence(std::string name,
                                          std::span<const Residue> residues) const {
  BuiltModel built = build_from_sequence(*single, std::move(name), residues);
  HMMJIT_TRY(calibrate_and_limit(built.hmm));
  return built;
}

Status Builder::calibrate_and_limit(Hmm& hmm) const {
  HMMJIT_TRY(calibrate_if_needed(hmm, calibration));
  if (hmm.alphabet->type == AlphabetType::kAmino) return {};
  const FlushToZeroScope flush;
  if (max_length)
    hmm.max_length = *max_length;
  else if (tail_mass > 0)
    hmm.max_length = hmmjit::max_length(hmm, tail_mass);
  else
    hmm.max_length = 4 * hmm.M;
  return {};
}

}  // namespace hmmjit::build
