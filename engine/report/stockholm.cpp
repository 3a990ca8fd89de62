#include "report/stockholm.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "build/aligned_rows.hpp"
#include "core/ascii.hpp"
#include "core/digest.hpp"
#include "core/sorted.hpp"

namespace hmmjit {
namespace {

using domain::Domain;

// Inverse of domain::posterior_code().
float posterior_of(char code) {
  if (code == '*') return 1.0f;
  if (code == '0') return 0.01f;
  return static_cast<float>(code - '0') / 10.0f;
}

// Calls `use(k, column)` for each column of an alignment; k: node of the column, or the node before
// an insertion.
template <typename Use>
void for_each_column(const Domain& domain, const Use& use) {
  int k = domain.hmm_from - 1;
  for (std::size_t c = 0; c < domain.alignment.model.size(); ++c)
    use(domain.alignment.model[c] == '.' ? k : ++k, c);
}

void make_room(build::ColumnLayout& layout, const Domain& domain) {
  const domain::Alignment& alignment = domain.alignment;
  std::size_t run = 0;
  for_each_column(domain, [&](int k, std::size_t c) {
    if (alignment.model[c] == '.') return layout.add_insertion(k, ++run);
    run = 0;
    if (alignment.sequence[c] != '-') layout.add_match(k);
  });
}

void lay_out(AlignedDomain& row, const build::ColumnLayout& layout) {
  const domain::Alignment& alignment = row.domain.alignment;
  row.sequence = layout.line('-');
  row.posterior.assign(layout.width(), '.');
  std::size_t run = 0;
  for_each_column(row.domain, [&](int k, std::size_t c) {
    const bool inserted = alignment.model[c] == '.';
    run = inserted ? run + 1 : 0;
    if (!inserted && !layout.has_column(k)) return;
    const std::size_t column = layout.after(k) + run - 1;
    row.sequence[column] = alignment.sequence[c];
    row.posterior[column] = alignment.pp[c];
  });
  layout.justify(row.sequence, &row.posterior);
}

// In jackhmmer's alignments, all residues are upper case and all gaps '-'.
void forget_inserts(std::string& sequence) {
  for (char& c : sequence) c = c == '.' ? '-' : ascii_upper(c);
}

// Calls `use` for the included domains of at most `targets_left` targets, which it decreases.
template <typename Use>
Status for_each_included(std::span<const Hit> hits, std::size_t& targets_left, const Use& use) {
  for (const Hit& hit : hits) {
    if (!has_included_domain(hit)) continue;
    if (targets_left == 0) return {};
    --targets_left;
    for (std::size_t d = 0; d < hit.score.domains.size(); ++d) {
      if (hit.domain_flags[d].included) HMMJIT_TRY(use(hit, hit.score.domains[d]));
    }
  }
  return {};
}

std::string row_name(const Hit& hit, const Domain& domain) {
  return hit.name + "/" + std::to_string(domain.iali) + "-" + std::to_string(domain.jali);
}

void append_head(std::string& out, const std::string& id, const ModelInfo& model, bool renamed,
                 const std::string& author) {
  build::StockholmLayout::append_head(out, renamed);
  out += "#=GF ID " + id + "\n";
  if (model.accession) out += "#=GF AC " + *model.accession + "\n";
  if (model.description) out += "#=GF DE " + *model.description + "\n";
  out += "#=GF AU " + author + "\n\n";
}

// Digests of names, to find repeated ones.
struct DigestOrder {
  static bool before(const Digest& a, const Digest& b) { return a < b; }
  static void encode(const Digest& digest, std::string& out) { put_bytes(out, digest); }
  static bool decode(Decoder& decoder, Digest& digest) {
    digest = decoder.bytes<Digest>();
    return decoder.ok();
  }
  static std::uint64_t bytes(const Digest&) { return sizeof(Digest); }
};

// Text of one block of a record. Sorted by block: accessions, descriptions, then the blocks of
// columns.
struct BlockText {
  std::uint64_t block = 0;
  std::string text;
};
constexpr std::uint64_t kAccessions = 0, kDescriptions = 1, kColumns = 2;

struct BlockOrder {
  static bool before(const BlockText& a, const BlockText& b) { return a.block < b.block; }
  static void encode(const BlockText& piece, std::string& out) {
    put_count(out, piece.block);
    put_text(out, piece.text);
  }
  static bool decode(Decoder& decoder, BlockText& piece) {
    piece.block = decoder.count();
    piece.text = decoder.text();
    return decoder.ok();
  }
  static std::uint64_t bytes(const BlockText& piece) { return sizeof piece + piece.text.size(); }
};

}  // namespace

struct AlignmentColumns::State {
  State(const ModelInfo& of, AlignedRows wanted, std::uint64_t memory)
      : model(of),
        which(std::move(wanted)),
        layout(of.M, {.all_nodes = which.all_nodes}),
        means(of.M),
        targets_left(which.targets),
        names(memory) {}

  Status add_name(const std::string& name, bool accession) {
    ++rows;
    any_accession |= accession;
    lines.longest = std::max(lines.longest, name.size());
    return names.add(digest_of(name));
  }
  bool has_query() const { return !which.query.empty(); }

  ModelInfo model;
  AlignedRows which;
  build::ColumnLayout layout;
  build::MeanPosteriors means;
  std::size_t targets_left;
  Sorted<Digest, DigestOrder> names;
  build::StockholmLayout lines;
  std::size_t rows = 0;
  bool any_accession = false, renamed = false;
};

AlignmentColumns::AlignmentColumns(const ModelInfo& model, AlignedRows which, std::uint64_t memory)
    : state_(make_hidden<State>(model, std::move(which), memory)) {}

Status AlignmentColumns::measure(std::span<const Hit> hits) {
  State& s = *state_;
  return for_each_included(hits, s.targets_left, [&](const Hit& hit, const Domain& domain) {
    make_room(s.layout, domain);
    for_each_column(domain, [&](int k, std::size_t c) {
      const domain::Alignment& alignment = domain.alignment;
      if (alignment.model[c] != '.' && alignment.pp[c] != '.')
        s.means.add(k, posterior_of(alignment.pp[c]));
    });
    return s.add_name(row_name(hit, domain), !hit.accession.empty());
  });
}

Result<std::size_t> AlignmentColumns::finish() {
  State& s = *state_;
  s.lines.posteriors = s.rows > 0;
  if (s.has_query())
    HMMJIT_TRY(
        s.add_name(s.which.query_name, s.model.accession && !s.model.accession->empty()));
  s.layout.place();
  HMMJIT_TRY(s.names.begin());
  std::optional<Digest> last;
  for (;;) {
    HMMJIT_ASSIGN(const Digest* const digest, s.names.next());
    if (digest == nullptr) break;
    s.renamed |= last == *digest;
    last = *digest;
  }
  s.names.end();
  if (s.renamed) s.lines.longest += s.lines.numbered_name(0, s.rows, {}).size();
  return s.rows;
}

std::size_t AlignmentColumns::rows() const { return state_->rows; }

std::string AlignmentColumns::reference() const { return state_->layout.line('x'); }

std::string AlignmentColumns::query_row() const {
  if (!state_->has_query()) return {};
  std::string line = state_->layout.line(state_->which.query);
  forget_inserts(line);
  return line;
}

Status AlignmentColumns::for_each_row(
    std::span<const Hit> hits, std::size_t& targets_left,
    const std::function<Status(const AlignedDomain&)>& use) const {
  return for_each_included(hits, targets_left, [&](const Hit& hit, const Domain& domain) {
    AlignedDomain row{hit, domain, row_name(hit, domain), {}, {}};
    lay_out(row, state_->layout);
    if (state_->which.upper_case) forget_inserts(row.sequence);
    return use(row);
  });
}

struct StockholmRecord::State {
  State(const AlignmentColumns& of, std::string name, std::size_t width, std::string by,
        std::uint64_t memory)
      : columns(of),
        s(*of.state_),
        id(std::move(name)),
        author(std::move(by)),
        block(width == 0 ? s.layout.width() : width),
        blocks((s.layout.width() + block - 1) / block),
        targets_left(s.which.targets),
        pieces(memory) {}

  Status add(std::uint64_t where, const auto& append) {
    BlockText piece{where, {}};
    append(piece.text);
    return piece.text.empty() ? Status{} : pieces.add(std::move(piece));
  }
  std::string numbered(const std::string& name) {
    return s.renamed ? s.lines.numbered_name(number++, s.rows, name) : name;
  }
  std::string_view part(std::string_view line, std::uint64_t b) const {
    return line.substr(b * block, block);
  }
  Status add_query();
  Status add_row(const std::string& row_name, const std::string& accession,
                 const std::optional<std::string>& description, std::string_view sequence,
                 std::string_view posterior);

  const AlignmentColumns& columns;
  const AlignmentColumns::State& s;
  std::string id, author;
  std::size_t block;  // columns per block
  std::uint64_t blocks;
  std::size_t targets_left, number = 0;
  bool begun = false;
  Sorted<BlockText, BlockOrder> pieces;
};

// The query has the model's accession and description, and no posteriors.
Status StockholmRecord::State::add_query() {
  if (std::exchange(begun, true) || !s.has_query()) return {};
  const ModelInfo& model = s.model;
  return add_row(s.which.query_name, model.accession.value_or(""), model.description,
                 columns.query_row(), {});
}

Status StockholmRecord::State::add_row(const std::string& row_name, const std::string& accession,
                                       const std::optional<std::string>& description,
                                       std::string_view sequence, std::string_view posterior) {
  const std::string name = numbered(row_name);
  HMMJIT_TRY(add(kAccessions, [&](std::string& out) {
    if (!accession.empty()) s.lines.append_annotation(out, name, "AC", accession);
  }));
  HMMJIT_TRY(add(kDescriptions, [&](std::string& out) {
    if (description) s.lines.append_annotation(out, name, "DE", *description);
  }));
  for (std::uint64_t b = 0; b < blocks; ++b)
    HMMJIT_TRY(add(kColumns + b, [&](std::string& out) {
      s.lines.append_row(out, name, part(sequence, b),
                         posterior.empty() ? posterior : part(posterior, b));
    }));
  return {};
}

StockholmRecord::StockholmRecord(const AlignmentColumns& columns, std::string id, std::size_t width,
                                 std::string author, std::uint64_t memory)
    : state_(make_hidden<State>(columns, std::move(id), width, std::move(author), memory)) {}

Status StockholmRecord::add(std::span<const Hit> hits) {
  State& state = *state_;
  HMMJIT_TRY(state.add_query());
  return state.columns.for_each_row(hits, state.targets_left, [&](const AlignedDomain& row) {
    const Hit& hit = row.hit;
    return state.add_row(row.name, hit.accession,
                         "[subseq from] " + (hit.description.empty() ? hit.name : hit.description),
                         row.sequence, row.posterior);
  });
}

Status StockholmRecord::write(const std::function<Status(std::string_view)>& out) {
  State& state = *state_;
  const AlignmentColumns::State& s = state.s;
  if (s.rows == 0) return {};
  HMMJIT_TRY(state.add_query());
  const std::string posterior = s.layout.line(s.means.codes()), reference = s.layout.line('x');
  std::string text;
  append_head(text, state.id, s.model, s.renamed, state.author);
  HMMJIT_TRY(out(text));
  HMMJIT_TRY(state.pieces.begin());
  std::uint64_t block = 0;
  for (;;) {
    HMMJIT_ASSIGN(const BlockText* const piece, state.pieces.next());
    const std::uint64_t next = piece == nullptr ? kColumns + state.blocks : piece->block;
    for (; block < next; ++block) {
      text.clear();
      if (block >= kColumns) {
        const std::uint64_t b = block - kColumns;
        if (s.lines.posteriors) s.lines.append_columns(text, "PP_cons", state.part(posterior, b));
        s.lines.append_columns(text, "RF", state.part(reference, b));
        if (block + 1 < kColumns + state.blocks) text += '\n';
      } else if (block == kAccessions ? s.any_accession
                                      : s.lines.posteriors || s.model.description.has_value()) {
        text = "\n";
      }
      HMMJIT_TRY(out(text));
    }
    if (piece == nullptr) return out("//\n");
    HMMJIT_TRY(out(piece->text));
  }
}

// ---- A3M ----

namespace {

// Upper case and '-' are match columns, lower case marks inserts.
void append_a3m_row(std::string& out, const domain::Domain& domain, int M) {
  out.append(static_cast<std::size_t>(domain.hmm_from - 1), '-');
  const domain::Alignment& a = domain.alignment;
  for (std::size_t c = 0; c < a.model.size(); ++c)
    out += a.model[c] == '.' ? ascii_lower(a.sequence[c]) : ascii_upper(a.sequence[c]);
  out.append(static_cast<std::size_t>(M - domain.hmm_to), '-');
  out += '\n';
}

}  // namespace

std::size_t append_a3m(std::string& out, const HitLot& lot, bool begun,
                       std::size_t* targets_left) {
  const ModelInfo& model = lot.model();
  std::size_t rows = 0, no_limit = kAllTargets;
  const auto add = [&](const Hit& hit, const Domain& domain) -> Status {
    if (rows++ == 0 && !begun) {
      // The first row is the query sequence or the model's consensus.
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
      for (const char c : model.consensus) out += ascii_upper(c);
      out += '\n';
    }
    out += ">" + row_name(hit, domain);
    if (!hit.description.empty()) out += " " + hit.description;
    out += '\n';
    append_a3m_row(out, domain, model.M);
    return {};
  };
  std::ignore =
      for_each_included(lot.hits, targets_left != nullptr ? *targets_left : no_limit, add);
  return rows;
}

}  // namespace hmmjit
