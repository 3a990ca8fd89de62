#include "report/a3m.hpp"

#include "report/stockholm.hpp"

namespace hmmjit {
namespace {

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// Upper case and '-' are match columns, lower case stands between them.
void append_row(std::string& out, const domain::Domain& domain, int M) {
  out.append(static_cast<std::size_t>(domain.hmm_from - 1), '-');
  const domain::Alignment& a = domain.alignment;
  for (std::size_t c = 0; c < a.model.size(); ++c)
    out += a.model[c] == '.' ? lower(a.sequence[c]) : upper(a.sequence[c]);
  out.append(static_cast<std::size_t>(M - domain.hmm_to), '-');
  out += '\n';
}

}  // namespace

std::size_t append_a3m(std::string& out, const HitLot& lot, bool begun,
                       std::size_t* targets_left) {
  const ModelInfo& model = lot.model();
  std::size_t rows = 0;
  for (const Hit& hit : lot.hits) {
    if (!has_included_domain(hit)) continue;
    if (targets_left != nullptr && (*targets_left)-- == 0) {
      *targets_left = 0;
      break;
    }
    for (std::size_t d = 0; d < hit.score.domains.size(); ++d) {
      if (!hit.domain_flags[d].included) continue;
      const domain::Domain& domain = hit.score.domains[d];
      if (rows++ == 0 && !begun) {
        // A query sequence is the first row; of a model, its consensus.
        if (model.built) {
          out += ">" + model.name;
          if (model.description) out += " " + *model.description;
          out += '\n';
        } else {
          out += "#" + model.name;
          if (model.accession) out += " " + *model.accession;
          if (model.description) out += " " + *model.description;
          out += "\n>" + model.name + "_consensus\n";
        }
        for (const char c : model.consensus) out += upper(c);
        out += '\n';
      }
      out += ">" + hit.name + "/" + std::to_string(domain.iali) + "-" + std::to_string(domain.jali);
      if (!hit.description.empty()) out += " " + hit.description;
      out += '\n';
      append_row(out, domain, model.M);
    }
  }
  return rows;
}

}  // namespace hmmjit
