#include "report/stockholm.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <vector>

#include "report/text.hpp"

namespace hmmjit {
namespace {

using domain::Domain;

struct Row {
  const Hit* hit;
  const Domain* domain;
  std::string name;
  std::string sequence, posterior;  // full width, once laid out
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Posterior characters stand for tenths; the mean of a column is encoded again the same way.
float decode(char code) {
  if (code == '*') return 1.0f;
  if (code == '0') return 0.01f;
  return static_cast<float>(code - '0') / 10.0f;
}

char encode(float p) {
  const double rounded = static_cast<double>(p) + 0.05;
  if (rounded >= 1.0) return '*';
  return static_cast<char>('0' + static_cast<int>(std::floor(rounded * 10.0)));
}

// Columns of the record: node k stands at consensus[k], its inserts behind it.
struct Layout {
  std::vector<std::size_t> consensus;  // [M+1]
  std::vector<std::size_t> inserts;    // [M+1] columns after node k
  std::size_t width = 0;
};

Layout make_layout(const std::vector<Row>& rows, int M) {
  Layout layout;
  layout.consensus.assign(static_cast<std::size_t>(M) + 1, 0);
  layout.inserts.assign(static_cast<std::size_t>(M) + 1, 0);
  for (const Row& row : rows) {
    auto k = static_cast<std::size_t>(row.domain->hmm_from) - 1;
    std::size_t run = 0;
    for (const char c : row.domain->alignment.model) {
      if (c == '.') {
        layout.inserts[k] = std::max(layout.inserts[k], ++run);
      } else {
        ++k;
        run = 0;
      }
    }
  }
  for (std::size_t k = 1; k < layout.consensus.size(); ++k) {
    layout.consensus[k] = layout.width;
    layout.width += 1 + layout.inserts[k];
  }
  return layout;
}

// Splits an insert stretch: half of its letters stay on the left, the rest goes to the right.
void justify(std::string& line, std::string& posterior, std::size_t at, std::size_t count) {
  std::size_t letters = 0;
  for (std::size_t c = 0; c < count; ++c) letters += is_letter(line[at + c]);
  const std::size_t keep = letters / 2;
  std::size_t to = count;
  for (std::size_t from = count; from-- > keep;) {
    if (line[at + from] == '.') continue;
    --to;
    std::swap(line[at + from], line[at + to]);
    std::swap(posterior[at + from], posterior[at + to]);
  }
}

void lay_out(Row& row, const Layout& layout) {
  row.sequence.assign(layout.width, '.');
  row.posterior.assign(layout.width, '.');
  for (std::size_t k = 1; k < layout.consensus.size(); ++k) row.sequence[layout.consensus[k]] = '-';
  const domain::Alignment& alignment = row.domain->alignment;
  auto k = static_cast<std::size_t>(row.domain->hmm_from) - 1;
  std::size_t run = 0;
  for (std::size_t c = 0; c < alignment.model.size(); ++c) {
    std::size_t column = 0;
    if (alignment.model[c] == '.') {
      column = layout.consensus[k] + ++run;
    } else {
      column = layout.consensus[++k];
      run = 0;
    }
    row.sequence[column] = alignment.sequence[c];
    row.posterior[column] = alignment.pp[c];
  }
  for (std::size_t node = 1; node < layout.consensus.size(); ++node) {
    if (layout.inserts[node] > 1)
      justify(row.sequence, row.posterior, layout.consensus[node] + 1, layout.inserts[node]);
  }
}

std::string mean_posterior(const std::vector<Row>& rows, const Layout& layout) {
  std::string line(layout.width, '.');
  for (std::size_t k = 1; k < layout.consensus.size(); ++k) {
    const std::size_t column = layout.consensus[k];
    double sum = 0;
    int count = 0;
    for (const Row& row : rows) {
      if (row.posterior[column] == '.') continue;
      sum += static_cast<double>(decode(row.posterior[column]));
      ++count;
    }
    if (count > 0) line[column] = encode(static_cast<float>(sum / count));
  }
  return line;
}

// Repeated row names get their row number in front. Returns the length of that prefix.
std::size_t make_names_unique(std::vector<Row>& rows) {
  std::set<std::string_view> seen;
  bool repeated = false;
  for (const Row& row : rows) repeated |= !seen.insert(row.name).second;
  if (!repeated) return 0;
  const std::size_t width = std::to_string(rows.size()).size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string number = std::to_string(i);
    rows[i].name = std::string(width - number.size(), '0') + number + "|" + rows[i].name;
  }
  return width + 1;
}

}  // namespace

std::size_t append_stockholm(std::string& out, const ModelInfo& model, const HitList& hits,
                             std::size_t columns, const std::string& author) {
  std::vector<Row> rows;
  for (const Hit& hit : hits.hits) {
    if (!hit.flags.included) continue;
    for (std::size_t d = 0; d < hit.score.domains.size(); ++d) {
      if (!hit.domain_flags[d].included) continue;
      const Domain& domain = hit.score.domains[d];
      rows.push_back(
          {&hit,
           &domain,
           hit.name + "/" + std::to_string(domain.iali) + "-" + std::to_string(domain.jali),
           {},
           {}});
    }
  }
  if (rows.empty()) return 0;

  const Layout layout = make_layout(rows, model.M);
  for (Row& row : rows) lay_out(row, layout);
  const std::string posterior = mean_posterior(rows, layout);
  std::string reference(layout.width, '.');
  for (std::size_t k = 1; k < layout.consensus.size(); ++k) reference[layout.consensus[k]] = 'x';

  const bool renamed = make_names_unique(rows) > 0;
  std::size_t longest = 0;
  bool any_accession = false;
  for (const Row& row : rows) {
    longest = std::max(longest, row.name.size());
    any_accession |= !row.hit->accession.empty();
  }
  // Room for the longest of "name", "#=GC PP_cons" and "#=GR name PP".
  const std::size_t margin = std::max<std::size_t>(7 + 6, longest + 2 + 7);

  out += "# STOCKHOLM 1.0\n";
  if (renamed)
    out += "# WARNING: seq names have been made unique by adding a prefix of \"<seq#>|\"\n";
  out += "#=GF ID " + model.name + "\n";
  if (model.accession) out += "#=GF AC " + *model.accession + "\n";
  if (model.description) out += "#=GF DE " + *model.description + "\n";
  out += "#=GF AU " + author + "\n\n";
  if (any_accession) {
    for (const Row& row : rows) {
      if (row.hit->accession.empty()) continue;
      out += "#=GS ";
      text::left(out, row.name, longest);
      (out += " AC ") += row.hit->accession;
      out += '\n';
    }
    out += '\n';
  }
  for (const Row& row : rows) {
    out += "#=GS ";
    text::left(out, row.name, longest);
    out += " DE [subseq from] ";
    out += row.hit->description.empty() ? row.hit->name : row.hit->description;
    out += '\n';
  }
  out += '\n';

  const std::size_t block = columns == 0 ? layout.width : columns;
  for (std::size_t at = 0; at < layout.width; at += block) {
    const auto part = [&](const std::string& line) {
      return std::string_view(line).substr(at, block);
    };
    if (at > 0) out += '\n';
    for (const Row& row : rows) {
      text::left(out, row.name, margin - 1);
      (out += ' ') += part(row.sequence);
      out += "\n#=GR ";
      text::left(out, row.name, longest);
      out += ' ';
      text::left(out, "PP", margin - longest - 7);
      (out += ' ') += part(row.posterior);
      out += '\n';
    }
    out += "#=GC ";
    text::left(out, "PP_cons", margin - 6);
    (out += ' ') += part(posterior);
    out += "\n#=GC ";
    text::left(out, "RF", margin - 6);
    (out += ' ') += part(reference);
    out += '\n';
  }
  out += "//\n";
  return rows.size();
}

}  // namespace hmmjit
