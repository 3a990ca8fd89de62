#include "report/stockholm.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "core/digest.hpp"
#include "core/spool_file.hpp"
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

// Columns of the record: node k stands at consensus[k], its inserts after it.
struct Layout {
  std::vector<std::size_t> consensus;  // [M+1]
  std::vector<std::size_t> inserts;    // [M+1] columns after node k
  std::size_t width = 0;
};

Layout empty_layout(int M) {
  Layout layout;
  layout.consensus.assign(static_cast<std::size_t>(M) + 1, 0);
  layout.inserts.assign(static_cast<std::size_t>(M) + 1, 0);
  return layout;
}

void make_room(Layout& layout, const Domain& domain) {
  auto k = static_cast<std::size_t>(domain.hmm_from) - 1;
  std::size_t run = 0;
  for (const char c : domain.alignment.model) {
    if (c == '.') {
      layout.inserts[k] = std::max(layout.inserts[k], ++run);
    } else {
      ++k;
      run = 0;
    }
  }
}

void place_columns(Layout& layout) {
  for (std::size_t k = 1; k < layout.consensus.size(); ++k) {
    layout.consensus[k] = layout.width;
    layout.width += 1 + layout.inserts[k];
  }
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

// Mean posterior of every node over the rows that have a residue there.
class MeanPosterior {
 public:
  explicit MeanPosterior(int M)
      : sums_(static_cast<std::size_t>(M) + 1), counts_(static_cast<std::size_t>(M) + 1) {}
  void add(const Domain& domain) {
    auto k = static_cast<std::size_t>(domain.hmm_from) - 1;
    const domain::Alignment& alignment = domain.alignment;
    for (std::size_t c = 0; c < alignment.model.size(); ++c) {
      if (alignment.model[c] == '.') continue;
      ++k;
      if (alignment.pp[c] == '.') continue;
      sums_[k] += static_cast<double>(decode(alignment.pp[c]));
      ++counts_[k];
    }
  }
  std::string line(const Layout& layout) const {
    std::string line(layout.width, '.');
    for (std::size_t k = 1; k < layout.consensus.size(); ++k) {
      if (counts_[k] > 0)
        line[layout.consensus[k]] =
            encode(static_cast<float>(sums_[k] / static_cast<double>(counts_[k])));
    }
    return line;
  }

 private:
  std::vector<double> sums_;
  std::vector<std::uint64_t> counts_;
};

std::string reference_line(const Layout& layout) {
  std::string line(layout.width, '.');
  for (std::size_t k = 1; k < layout.consensus.size(); ++k) line[layout.consensus[k]] = 'x';
  return line;
}

// Beside a query sequence, rows have upper case and '-' everywhere.
void forget_inserts(std::string& sequence) {
  for (char& c : sequence) {
    if (c == '.') c = '-';
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
}

// The query sequence, a residue in the column of every node.
std::string query_line(std::string_view query, const Layout& layout) {
  std::string line(layout.width, '-');
  for (std::size_t k = 1; k < layout.consensus.size(); ++k)
    line[layout.consensus[k]] = query[k - 1];
  forget_inserts(line);
  return line;
}

std::string row_name(const Hit& hit, const Domain& domain) {
  return hit.name + "/" + std::to_string(domain.iali) + "-" + std::to_string(domain.jali);
}

// Row number `i` of `rows` before a name that is not the only one.
std::string row_prefix(std::size_t i, std::size_t rows) {
  const std::size_t width = std::to_string(rows).size();
  const std::string number = std::to_string(i);
  return std::string(width - number.size(), '0') + number + "|";
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
  for (std::size_t i = 0; i < rows.size(); ++i) names[i] = row_prefix(i, rows.size()) + names[i];
  return names;
}

void append_head(std::string& out, const std::string& id, const ModelInfo& model, bool renamed,
                 const std::string& author) {
  out += "# STOCKHOLM 1.0\n";
  if (renamed)
    out += "# WARNING: seq names have been made unique by adding a prefix of \"<seq#>|\"\n";
  out += "#=GF ID " + id + "\n";
  if (model.accession) out += "#=GF AC " + *model.accession + "\n";
  if (model.description) out += "#=GF DE " + *model.description + "\n";
  out += "#=GF AU " + author + "\n\n";
}

// Widths of what stands in front of the columns.
struct Margins {
  std::size_t longest = 0;  // row name
  bool posteriors = true;   // the record has lines of posteriors
  // Room for the longest of "name", "#=GC PP_cons" (or "#=GC RF") and "#=GR name PP".
  std::size_t margin() const {
    return posteriors ? std::max<std::size_t>(7 + 6, longest + 2 + 7)
                      : std::max<std::size_t>(2 + 6, longest + 1);
  }
};

void append_accession(std::string& out, const std::string& name, std::string_view accession,
                      const Margins& margins) {
  if (accession.empty()) return;
  out += "#=GS ";
  text::left(out, name, margins.longest);
  (out += " AC ") += accession;
  out += '\n';
}

void append_description(std::string& out, const std::string& name, std::string_view description,
                        const Margins& margins) {
  out += "#=GS ";
  text::left(out, name, margins.longest);
  (out += " DE ") += description;
  out += '\n';
}

void append_source(std::string& out, const std::string& name, const Hit& hit,
                   const Margins& margins) {
  append_description(out, name,
                     "[subseq from] " + (hit.description.empty() ? hit.name : hit.description),
                     margins);
}

// The row of a query sequence has no posteriors.
void append_query_row(std::string& out, const std::string& name, std::string_view sequence,
                      const Margins& margins) {
  text::left(out, name, margins.margin() - 1);
  (out += ' ') += sequence;
  out += '\n';
}

void append_row(std::string& out, const std::string& name, std::string_view sequence,
                std::string_view posterior, const Margins& margins) {
  append_query_row(out, name, sequence, margins);
  out += "#=GR ";
  text::left(out, name, margins.longest);
  out += ' ';
  text::left(out, "PP", margins.margin() - margins.longest - 7);
  (out += ' ') += posterior;
  out += '\n';
}

void append_column_lines(std::string& out, std::string_view posterior, std::string_view reference,
                         const Margins& margins) {
  if (margins.posteriors) {
    out += "#=GC ";
    text::left(out, "PP_cons", margins.margin() - 6);
    (out += ' ') += posterior;
    out += '\n';
  }
  out += "#=GC ";
  text::left(out, "RF", margins.margin() - 6);
  (out += ' ') += reference;
  out += '\n';
}

void add_included(std::vector<Row>& rows, const HitList& hits, std::size_t targets) {
  for (const Hit& hit : hits.hits) {
    if (!has_included_domain(hit)) continue;
    if (targets-- == 0) break;
    for (std::size_t d = 0; d < hit.score.domains.size(); ++d) {
      if (!hit.domain_flags[d].included) continue;
      const Domain& domain = hit.score.domains[d];
      rows.push_back({&hit, &domain, row_name(hit, domain), {}, {}});
    }
  }
}

// Makes the columns and lays out all rows of hits.
Layout lay_out_all(HitAlignment& alignment, int M) {
  Layout layout = empty_layout(M);
  MeanPosterior mean(M);
  bool any_domain = false;
  for (const Row& row : alignment.rows) {
    if (row.domain == nullptr) continue;
    make_room(layout, *row.domain);
    mean.add(*row.domain);
    any_domain = true;
  }
  place_columns(layout);
  for (Row& row : alignment.rows) {
    if (row.domain != nullptr) lay_out(row, layout);
  }
  alignment.reference = reference_line(layout);
  if (any_domain) alignment.mean_posterior = mean.line(layout);
  return layout;
}

}  // namespace

HitAlignment align_hits(const HitList& hits, int M, std::size_t targets) {
  HitAlignment alignment;
  add_included(alignment.rows, hits, targets);
  if (!alignment.rows.empty()) lay_out_all(alignment, M);
  return alignment;
}

HitAlignment align_with_query(const HitList& hits, int M, const std::string& query_name,
                              std::string_view query, std::size_t targets) {
  HitAlignment alignment;
  if (!query.empty()) alignment.rows.push_back({nullptr, nullptr, query_name, {}, {}});
  add_included(alignment.rows, hits, targets);
  const Layout layout = lay_out_all(alignment, M);
  for (Row& row : alignment.rows) {
    if (row.domain != nullptr) forget_inserts(row.sequence);
  }
  if (!query.empty()) alignment.rows.front().sequence = query_line(query, layout);
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
  Margins margins;
  margins.posteriors = !alignment.mean_posterior.empty();
  bool any_accession = false, any_description = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    margins.longest = std::max(margins.longest, names[i].size());
    any_accession |= !accession(rows[i]).empty();
    any_description |= rows[i].hit != nullptr || model.description.has_value();
  }
  append_head(out, id, model, renamed, author);
  if (any_accession) {
    for (std::size_t i = 0; i < rows.size(); ++i)
      append_accession(out, names[i], accession(rows[i]), margins);
    out += '\n';
  }
  if (any_description) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].hit != nullptr) {
        append_source(out, names[i], *rows[i].hit, margins);
      } else if (model.description) {
        append_description(out, names[i], *model.description, margins);
      }
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
      if (rows[i].hit == nullptr)
        append_query_row(out, names[i], part(rows[i].sequence), margins);
      else
        append_row(out, names[i], part(rows[i].sequence), part(rows[i].posterior), margins);
    }
    append_column_lines(out,
                        margins.posteriors ? part(alignment.mean_posterior) : std::string_view(),
                        part(alignment.reference), margins);
  }
  out += "//\n";
}

std::size_t append_stockholm(std::string& out, const ModelInfo& model, const HitList& hits,
                             std::size_t columns, const std::string& author, std::size_t targets) {
  const HitAlignment alignment = align_hits(hits, model.M, targets);
  if (alignment.rows.empty()) return 0;
  append_stockholm(out, model.name, model, alignment, columns, author);
  return alignment.rows.size();
}

// ---- StreamedStockholm --------------------------------------------------------------------------

namespace {

// Blocks of columns whose rows are written in one pass, each to a file of its own.
constexpr std::size_t kBlocksOfPass = 64;
// Names are compared bucket by bucket of their digests.
constexpr std::size_t kBuckets = 64;

}  // namespace

struct StreamedStockholm::State {
  ModelInfo model;
  std::size_t columns;
  std::string author;
  Layout layout;
  MeanPosterior mean;
  Margins margins;
  std::size_t rows = 0;
  bool any_accession = false, renamed = false;
  std::vector<SpoolFile> names;

  std::size_t targets, targets_left;  // at most, and not seen in this pass
  std::optional<AlignedQuery> query;

  State(const ModelInfo& of, int nodes, std::size_t width, std::string by, std::size_t most,
        std::optional<AlignedQuery> first)
      : model(of),
        columns(width),
        author(std::move(by)),
        layout(empty_layout(nodes)),
        mean(nodes),
        targets(most),
        targets_left(most),
        query(std::move(first)) {}

  // A row was seen for the first time.
  Status measure_row(const std::string& name, bool accession) {
    ++rows;
    any_accession |= accession;
    margins.longest = std::max(margins.longest, name.size());
    const Digest of_name = digest_of(name);
    return names[of_name.low % names.size()].append(
        {reinterpret_cast<const char*>(&of_name), sizeof of_name});
  }
  void lay_out_row(Row& row) const {
    lay_out(row, layout);
    if (query) forget_inserts(row.sequence);
  }

  // Calls `use` with every included domain.
  template <typename Use>
  Status for_each_row(const Hit& hit, const Use& use) {
    if (targets_left == 0 || !has_included_domain(hit)) return {};
    --targets_left;
    for (std::size_t d = 0; d < hit.score.domains.size(); ++d) {
      if (hit.domain_flags[d].included) HMMJIT_TRY(use(hit.score.domains[d]));
    }
    return {};
  }
  Result<bool> any_name_twice() {
    for (SpoolFile& bucket : names) {
      std::vector<Digest> digests;
      digests.reserve(bucket.size() / sizeof(Digest));
      std::string bytes;
      for (std::uint64_t at = 0; at < bucket.size(); at += bytes.size()) {
        HMMJIT_TRY(bucket.read(at, (std::size_t{1} << 16) * sizeof(Digest), bytes));
        const std::size_t before = digests.size();
        digests.resize(before + bytes.size() / sizeof(Digest));
        std::memcpy(digests.data() + before, bytes.data(), bytes.size());
      }
      std::ranges::sort(digests);
      if (std::ranges::adjacent_find(digests) != digests.end()) return true;
    }
    return false;
  }
};

StreamedStockholm::StreamedStockholm(std::unique_ptr<State> state) : state_(std::move(state)) {}
StreamedStockholm::StreamedStockholm(StreamedStockholm&&) noexcept = default;
StreamedStockholm& StreamedStockholm::operator=(StreamedStockholm&&) noexcept = default;
StreamedStockholm::~StreamedStockholm() = default;

Result<StreamedStockholm> StreamedStockholm::create(const ModelInfo& model, std::size_t columns,
                                                    std::string author, std::size_t targets,
                                                    std::optional<AlignedQuery> query) {
  const int nodes = query ? static_cast<int>(query->residues.size()) : model.M;
  auto state =
      std::make_unique<State>(model, nodes, columns, std::move(author), targets, std::move(query));
  for (std::size_t i = 0; i < kBuckets; ++i) {
    HMMJIT_ASSIGN(SpoolFile file, SpoolFile::create(std::size_t{1} << 12));
    state->names.push_back(std::move(file));
  }
  if (state->query)
    HMMJIT_TRY(
        state->measure_row(state->query->name, model.accession && !model.accession->empty()));
  return StreamedStockholm(std::move(state));
}

Status StreamedStockholm::measure(const Hit& hit) {
  State& s = *state_;
  return s.for_each_row(hit, [&](const Domain& domain) -> Status {
    make_room(s.layout, domain);
    s.mean.add(domain);
    return s.measure_row(row_name(hit, domain), !hit.accession.empty());
  });
}

Result<std::size_t> StreamedStockholm::end_measuring() {
  State& s = *state_;
  place_columns(s.layout);
  HMMJIT_ASSIGN(s.renamed, s.any_name_twice());
  if (s.renamed) s.margins.longest += row_prefix(0, s.rows).size();
  s.margins.posteriors = s.rows > (s.query ? 1 : 0);
  s.names.clear();
  return s.rows;
}

std::string StreamedStockholm::reference() const { return reference_line(state_->layout); }

Status StreamedStockholm::for_each_row(
    const HitPass& pass,
    const std::function<void(const std::string& name, const std::string& sequence)>& use) {
  State& s = *state_;
  if (s.query) use(s.query->name, query_line(s.query->residues, s.layout));
  s.targets_left = s.targets;
  return pass([&](const Hit& hit) {
    return s.for_each_row(hit, [&](const Domain& domain) -> Status {
      Row row{&hit, &domain, row_name(hit, domain), {}, {}};
      s.lay_out_row(row);
      use(row.name, row.sequence);
      return {};
    });
  });
}

Status StreamedStockholm::write(const HitPass& pass,
                                const std::function<Status(std::string_view)>& out) {
  State& s = *state_;
  if (s.rows == 0) return {};
  const std::string posterior = s.mean.line(s.layout), reference = this->reference();
  const std::size_t block = s.columns == 0 ? s.layout.width : s.columns;
  const std::size_t blocks = (s.layout.width + block - 1) / block;
  std::string text;
  append_head(text, s.query ? s.query->id : s.model.name, s.model, s.renamed, s.author);
  HMMJIT_TRY(out(text));
  for (std::size_t first = 0; first < blocks; first += kBlocksOfPass) {
    const std::size_t last = std::min(first + kBlocksOfPass, blocks);
    // Accessions, descriptions, and the rows of each block.
    std::vector<SpoolFile> files;
    for (std::size_t i = 0; i < last - first + 2; ++i) {
      HMMJIT_ASSIGN(SpoolFile file, SpoolFile::create());
      files.push_back(std::move(file));
    }
    std::size_t number = 0;
    if (s.query) {
      std::string name = s.query->name, line;
      if (s.renamed) name = row_prefix(number, s.rows) + name;
      ++number;
      if (first == 0) {
        append_accession(line, name, s.model.accession.value_or(""), s.margins);
        HMMJIT_TRY(files[0].append(line));
        line.clear();
        if (s.model.description) append_description(line, name, *s.model.description, s.margins);
        HMMJIT_TRY(files[1].append(line));
      }
      const std::string sequence = query_line(s.query->residues, s.layout);
      for (std::size_t b = first; b < last; ++b) {
        line.clear();
        append_query_row(line, name, std::string_view(sequence).substr(b * block, block),
                         s.margins);
        HMMJIT_TRY(files[b - first + 2].append(line));
      }
    }
    s.targets_left = s.targets;
    const Status passed = pass([&](const Hit& hit) {
      return s.for_each_row(hit, [&](const Domain& domain) -> Status {
        Row row{&hit, &domain, row_name(hit, domain), {}, {}};
        if (s.renamed) row.name = row_prefix(number, s.rows) + row.name;
        ++number;
        s.lay_out_row(row);
        std::string line;
        if (first == 0) {
          append_accession(line, row.name, hit.accession, s.margins);
          HMMJIT_TRY(files[0].append(line));
          line.clear();
          append_source(line, row.name, hit, s.margins);
          HMMJIT_TRY(files[1].append(line));
        }
        for (std::size_t b = first; b < last; ++b) {
          line.clear();
          append_row(line, row.name, std::string_view(row.sequence).substr(b * block, block),
                     std::string_view(row.posterior).substr(b * block, block), s.margins);
          HMMJIT_TRY(files[b - first + 2].append(line));
        }
        return {};
      });
    });
    HMMJIT_TRY(passed);
    if (first == 0) {
      HMMJIT_TRY(files[0].for_each(out));
      if (s.any_accession) HMMJIT_TRY(out("\n"));
      HMMJIT_TRY(files[1].for_each(out));
      if (s.margins.posteriors || s.model.description) HMMJIT_TRY(out("\n"));
    }
    for (std::size_t b = first; b < last; ++b) {
      if (b > 0) HMMJIT_TRY(out("\n"));
      HMMJIT_TRY(files[b - first + 2].for_each(out));
      text.clear();
      append_column_lines(text, std::string_view(posterior).substr(b * block, block),
                          std::string_view(reference).substr(b * block, block), s.margins);
      HMMJIT_TRY(out(text));
    }
  }
  return out("//\n");
}

}  // namespace hmmjit
