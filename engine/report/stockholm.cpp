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

using Row = HitAlignment::Row;

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
    if (row.domain == nullptr) continue;
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
      if (row.posterior.empty() || row.posterior[column] == '.') continue;
      sum += static_cast<double>(decode(row.posterior[column]));
      ++count;
    }
    if (count > 0) line[column] = encode(static_cast<float>(sum / count));
  }
  return line;
}

// Names of rows as written: repeated ones get all rows a number in front.
std::vector<std::string> unique_names(const std::vector<Row>& rows, bool* renamed) {
  std::vector<std::string> names;
  std::set<std::string_view> seen;
  *renamed = false;
  for (const Row& row : rows) {
    names.push_back(row.name);
    *renamed |= !seen.insert(row.name).second;
  }
  if (!*renamed) return names;
  const std::size_t width = std::to_string(rows.size()).size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string number = std::to_string(i);
    names[i] = std::string(width - number.size(), '0') + number + "|" + names[i];
  }
  return names;
}

void add_included(std::vector<Row>& rows, const HitList& hits) {
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
}

Layout lay_out_all(HitAlignment& alignment, int M) {
  Layout layout = make_layout(alignment.rows, M);
  for (Row& row : alignment.rows) {
    if (row.domain != nullptr) lay_out(row, layout);
  }
  alignment.reference.assign(layout.width, '.');
  for (std::size_t k = 1; k < layout.consensus.size(); ++k)
    alignment.reference[layout.consensus[k]] = 'x';
  if (std::ranges::any_of(alignment.rows, [](const Row& row) { return row.domain != nullptr; }))
    alignment.mean_posterior = mean_posterior(alignment.rows, layout);
  return layout;
}

}  // namespace

HitAlignment align_hits(const HitList& hits, int M) {
  HitAlignment alignment;
  add_included(alignment.rows, hits);
  if (!alignment.rows.empty()) lay_out_all(alignment, M);
  return alignment;
}

HitAlignment align_with_query(const HitList& hits, const std::string& query_name,
                              std::string_view query) {
  HitAlignment alignment;
  alignment.rows.push_back({nullptr, nullptr, query_name, {}, {}});
  add_included(alignment.rows, hits);
  const Layout layout = lay_out_all(alignment, static_cast<int>(query.size()));
  std::string& first = alignment.rows.front().sequence;
  first.assign(layout.width, '-');
  for (std::size_t k = 1; k < layout.consensus.size(); ++k)
    first[layout.consensus[k]] = query[k - 1];
  for (Row& row : alignment.rows) {
    for (char& c : row.sequence) {
      if (c == '.') c = '-';
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
  }
  return alignment;
}

void append_stockholm(std::string& out, const std::string& id, const ModelInfo& model,
                      const HitAlignment& alignment, std::size_t columns,
                      const std::string& author) {
  const std::vector<Row>& rows = alignment.rows;
  bool renamed = false;
  const std::vector<std::string> names = unique_names(rows, &renamed);
  const auto accession = [&](const Row& row) -> std::string_view {
    if (row.hit != nullptr) return row.hit->accession;
    return model.accession ? std::string_view(*model.accession) : std::string_view();
  };
  std::size_t longest = 0;
  bool any_accession = false, any_description = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    longest = std::max(longest, names[i].size());
    any_accession |= !accession(rows[i]).empty();
    any_description |= rows[i].hit != nullptr || model.description.has_value();
  }
  // Room for the longest of "name", "#=GC PP_cons" (or "#=GC RF") and "#=GR name PP".
  const bool posteriors = !alignment.mean_posterior.empty();
  const std::size_t margin = posteriors ? std::max<std::size_t>(7 + 6, longest + 2 + 7)
                                        : std::max<std::size_t>(2 + 6, longest + 1);

  out += "# STOCKHOLM 1.0\n";
  if (renamed)
    out += "# WARNING: seq names have been made unique by adding a prefix of \"<seq#>|\"\n";
  out += "#=GF ID " + id + "\n";
  if (model.accession) out += "#=GF AC " + *model.accession + "\n";
  if (model.description) out += "#=GF DE " + *model.description + "\n";
  out += "#=GF AU " + author + "\n\n";
  if (any_accession) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (accession(rows[i]).empty()) continue;
      out += "#=GS ";
      text::left(out, names[i], longest);
      (out += " AC ") += accession(rows[i]);
      out += '\n';
    }
    out += '\n';
  }
  if (any_description) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Hit* const hit = rows[i].hit;
      if (hit == nullptr && !model.description) continue;
      out += "#=GS ";
      text::left(out, names[i], longest);
      if (hit == nullptr) {
        out += " DE " + *model.description;
      } else {
        out += " DE [subseq from] ";
        out += hit->description.empty() ? hit->name : hit->description;
      }
      out += '\n';
    }
    out += '\n';
  }

  const std::size_t width = alignment.reference.size();
  const std::size_t block = columns == 0 ? width : columns;
  for (std::size_t at = 0; at < width; at += block) {
    const auto part = [&](const std::string& line) {
      return std::string_view(line).substr(at, block);
    };
    if (at > 0) out += '\n';
    for (std::size_t i = 0; i < rows.size(); ++i) {
      text::left(out, names[i], margin - 1);
      (out += ' ') += part(rows[i].sequence);
      out += '\n';
      if (rows[i].hit == nullptr) continue;
      out += "#=GR ";
      text::left(out, names[i], longest);
      out += ' ';
      text::left(out, "PP", margin - longest - 7);
      (out += ' ') += part(rows[i].posterior);
      out += '\n';
    }
    if (posteriors) {
      out += "#=GC ";
      text::left(out, "PP_cons", margin - 6);
      (out += ' ') += part(alignment.mean_posterior);
      out += '\n';
    }
    out += "#=GC ";
    text::left(out, "RF", margin - 6);
    (out += ' ') += part(alignment.reference);
    out += '\n';
  }
  out += "//\n";
}

std::size_t append_stockholm(std::string& out, const ModelInfo& model, const HitList& hits,
                             std::size_t columns, const std::string& author) {
  const HitAlignment alignment = align_hits(hits, model.M);
  if (alignment.rows.empty()) return 0;
  append_stockholm(out, model.name, model, alignment, columns, author);
  return alignment.rows.size();
}

}  // namespace hmmjit
