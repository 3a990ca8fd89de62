#include "report/features.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "io/byte_source.hpp"
#include "model/residue_copies.hpp"
#include "report/exact_text.hpp"
#include "report/fasta.hpp"
#include "report/numbers.hpp"
#include "report/text.hpp"

namespace hmmjit {
namespace {

std::string_view without_version(std::string_view accession) {
  return accession.substr(0, accession.find('.'));
}

// Text of GFF3 columns: what the specification reserves, control characters and "%" itself as
// %XX. `reserved`: beyond those, of this column.
void append_encoded(std::string& out, std::string_view text, std::string_view reserved) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte == 0x7f || c == '%' || reserved.find(c) != reserved.npos) {
      fmt::format_to(std::back_inserter(out), "%{:02X}", byte);
    } else {
      out += c;
    }
  }
}

std::string e_value_text(double value) {
  std::string text;
  text::general(text, value, 0, 3);
  return text;
}

}  // namespace

Result<Clans> read_clans(const std::string& path) {
  HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(path));
  BufferedInput input(std::move(source));
  Clans clans;
  std::string_view line;
  for (;;) {
    HMMJIT_ASSIGN(const bool more, input.line(&line));
    if (!more) break;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    std::vector<std::string_view> fields;
    for (std::string_view rest = line;;) {
      const std::size_t tab = rest.find('\t');
      fields.push_back(rest.substr(0, tab));
      if (tab == rest.npos) break;
      rest.remove_prefix(tab + 1);
    }
    if (fields.size() != 2 && fields.size() < 4)
      return fail(ErrorCode::kInput,
                  "a line of clans has two columns, or the five of Pfam-A.clans.tsv", input.where(),
                  "give Pfam-A.clans.tsv, or a model and its clan by a tab");
    if (fields[1].empty() || fields[1] == "\\N") continue;
    clans.emplace(without_version(fields[0]), fields[1]);
    if (fields.size() >= 4 && !fields[3].empty()) clans.emplace(fields[3], fields[1]);
  }
  return clans;
}

Result<std::unique_ptr<FeatureWriter>> FeatureWriter::create(const FeaturePaths& paths,
                                                             OverlapRule rule) {
  auto writer = std::make_unique<FeatureWriter>();
  writer->rule_ = std::move(rule);
  const auto open = [](const std::string& path, std::optional<TextOutput>& file) -> Status {
    if (path.empty()) return {};
    HMMJIT_ASSIGN(file, TextOutput::create(path));
    return {};
  };
  HMMJIT_TRY(open(paths.gff, writer->gff_));
  HMMJIT_TRY(open(paths.bed, writer->bed_));
  HMMJIT_TRY(open(paths.fasta, writer->fasta_));
  HMMJIT_TRY(open(paths.domain_fasta, writer->domain_fasta_));
  return writer;
}

Status FeatureWriter::add(const ModelResult& result) {
  const HitList& hits = result.hits;
  const auto model = static_cast<std::uint32_t>(models_.size());
  Model& added = models_.emplace_back();
  added.name = result.model.name;
  added.accession = result.model.accession.value_or("");
  if (rule_.clans) {
    auto clan = rule_.clans->find(without_version(added.accession));
    if (added.accession.empty() || clan == rule_.clans->end()) clan = rule_.clans->find(added.name);
    if (clan != rule_.clans->end()) added.clan = clan->second;
  }
  for (const Hit& hit : hits.hits) add_hit(hit, hits, model);
  if (result.stored == nullptr) return {};
  HMMJIT_TRY(result.stored->begin());
  Hit hit;
  for (;;) {
    HMMJIT_ASSIGN(const bool more, result.stored->next(hit));
    if (!more) return {};
    add_hit(hit, hits, model);
  }
}

void FeatureWriter::add_hit(const Hit& hit, const HitList& sums, std::uint32_t model) {
  if (!hit.flags.reported || !hit.flags.included) return;
  Target& target = targets_[hit.index];
  target.name = hit.name;
  target.length = hit.length;
  int number = 0;
  for (std::size_t d = 0; d < hit.score.domains.size(); ++d) {
    if (!hit.domain_flags[d].reported) continue;
    ++number;
    if (!hit.domain_flags[d].included) continue;
    const domain::Domain& domain = hit.score.domains[d];
    target.features.push_back({model, number, domain.ienv, domain.jenv, domain.iali, domain.jali,
                               domain.hmm_from, domain.hmm_to, domain.log_p,
                               independent_e_value(domain, sums), domain.bits});
  }
}

bool FeatureWriter::compete(const Feature& a, const Feature& b) const {
  if (a.model == b.model) return false;
  const int shared = std::min(a.env_to, b.env_to) - std::max(a.env_from, b.env_from) + 1;
  if (rule_.clans) {
    const std::string& clan = models_[a.model].clan;
    return shared > 0 && !clan.empty() && clan == models_[b.model].clan;
  }
  const int shorter = std::min(a.env_to - a.env_from, b.env_to - b.env_from) + 1;
  return 2 * shared >= shorter;
}

void FeatureWriter::resolve(std::vector<Feature>& features) const {
  if (rule_.resolve) {
    std::ranges::sort(features, {}, [](const Feature& f) {
      return std::tuple(f.log_p, -f.bits, f.model, f.env_from);
    });
    std::vector<Feature> kept;
    for (const Feature& feature : features) {
      if (std::ranges::none_of(kept, [&](const Feature& k) { return compete(feature, k); }))
        kept.push_back(feature);
    }
    features = std::move(kept);
  }
  std::ranges::sort(features, {}, [](const Feature& f) {
    return std::tuple(f.env_from, f.env_to, f.model, f.number);
  });
}

Status FeatureWriter::write(TargetSource* targets, const Alphabet& alphabet) {
  for (auto& [index, target] : targets_) resolve(target.features);
  if (gff_) gff_->write("##gff-version 3\n");
  std::uint64_t number = 0;
  for (const auto& [index, target] : targets_) {
    if (target.features.empty()) continue;
    std::string name;
    append_encoded(name, target.name, ">");
    if (gff_) gff_->write(fmt::format("##sequence-region {} 1 {}\n", name, target.length));
    for (const Feature& f : target.features) {
      const Model& model = models_[f.model];
      const std::string e_value = e_value_text(f.i_evalue);
      if (gff_) {
        std::string line =
            fmt::format("{}\thmmjit\tprotein_hmm_match\t{}\t{}\t{}\t.\t.\tID=match{};Name=", name,
                        f.env_from, f.env_to, e_value, ++number);
        constexpr std::string_view kReserved = ";=&,";
        append_encoded(line, model.name, kReserved);
        line += ";Target=";
        append_encoded(line, model.name, kReserved);
        fmt::format_to(std::back_inserter(line), " {} {}", f.hmm_from, f.hmm_to);
        if (!model.accession.empty()) {
          line += ";accession=";
          append_encoded(line, model.accession, kReserved);
        }
        if (!model.clan.empty()) {
          line += ";clan=";
          append_encoded(line, model.clan, kReserved);
        }
        fmt::format_to(std::back_inserter(line), ";aligned_from={};aligned_to={};bits=", f.ali_from,
                       f.ali_to);
        text::fixed(line, static_cast<double>(f.bits), 0, 1);
        gff_->write(line + "\n");
      }
      if (bed_) {
        std::string line;
        text::tsv_field(line, target.name);
        fmt::format_to(std::back_inserter(line), "\t{}\t{}\t", f.env_from - 1, f.env_to);
        text::tsv_field(line, model.name);
        const int score = static_cast<int>(std::clamp(f.bits, 0.0f, 1000.0f));
        fmt::format_to(std::back_inserter(line), "\t{}\t.\t{}\t", score, e_value);
        text::fixed(line, static_cast<double>(f.bits), 0, 1);
        bed_->write(line + "\n");
      }
    }
  }
  if (fasta_ || domain_fasta_) HMMJIT_TRY(write_sequences(*targets, alphabet));
  for (auto* file : {&gff_, &bed_, &fasta_, &domain_fasta_}) {
    if (*file) HMMJIT_TRY((*file)->flush());
  }
  return {};
}

Status FeatureWriter::write_sequences(TargetSource& targets, const Alphabet& alphabet) {
  constexpr std::size_t kBlockResidues = std::size_t{1} << 20;
  auto wanted = targets_.begin();
  while (wanted != targets_.end()) {
    TargetBlock block;
    HMMJIT_ASSIGN(const bool more, targets.next(block, kBlockResidues));
    const auto changed = [&] {
      return fail(ErrorCode::kInput,
                  "the sequences are not those that were searched: " + wanted->second.name, {},
                  "do not change the file during a search");
    };
    if (!more) return changed();
    std::string text;
    ResidueCopies copies;
    for (; wanted != targets_.end() && wanted->first < block.first_index() + block.size();
         ++wanted) {
      const TargetView view = block[wanted->first - block.first_index()];
      const Target& target = wanted->second;
      if (view.name != target.name || view.length() != target.length) return changed();
      copies.clear();
      HMMJIT_ASSIGN(const std::span<const Residue> residues,
                    copies.of(block, wanted->first - block.first_index(), alphabet));
      if (fasta_) {
        text.clear();
        ((text += '>') += view.name);
        if (!view.description.empty()) (text += ' ') += view.description;
        append_fasta(text += '\n', residues, alphabet);
        fasta_->write(text);
      }
      if (!domain_fasta_) continue;
      for (const Feature& f : target.features) {
        text = fmt::format(">{}/{}-{} {} {}", view.name, f.env_from, f.env_to,
                           models_[f.model].name, e_value_text(f.i_evalue));
        if (!view.description.empty()) (text += ' ') += view.description;
        const auto from = static_cast<std::size_t>(f.env_from - 1);
        append_fasta(text += '\n',
                     residues.subspan(from, static_cast<std::size_t>(f.env_to) - from), alphabet);
        domain_fasta_->write(text);
      }
    }
  }
  return {};
}

std::vector<OutputFile*> FeatureWriter::files() {
  std::vector<OutputFile*> files;
  for (auto* file : {&gff_, &bed_, &fasta_, &domain_fasta_}) {
    if (*file) files.push_back(&(*file)->file());
  }
  return files;
}

}  // namespace hmmjit
