#include "report/features.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>

#include "core/ascii.hpp"
#include "core/coding.hpp"
#include "io/columns.hpp"
#include "model/residue_copies.hpp"
#include "nucleotide/search.hpp"
#include "report/fasta.hpp"
#include "report/numbers.hpp"
#include "report/text.hpp"

namespace hmmjit {
namespace {

std::string_view without_version(std::string_view accession) {
  return accession.substr(0, accession.find('.'));
}

bool is_alphanumeric(char c) { return (c >= '0' && c <= '9') || is_ascii_letter(c); }

// Appends `text`, with bytes that are not `allowed` as %XX.
template <typename Allowed>
void append_encoded(std::string& out, std::string_view text, const Allowed& allowed) {
  for (const char c : text) {
    if (allowed(c)) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "%{:02X}", static_cast<unsigned char>(c));
    }
  }
}

// Column 1 of GFF3: characters that the specification allows in an identifier.
bool in_gff_identifier(char c) {
  return is_alphanumeric(c) || std::string_view(".:^*$@!+_?-|").find(c) != std::string_view::npos;
}
// Column 9 of GFF3: everything except separators, control characters and '%'.
bool in_gff_attribute(char c) {
  return static_cast<unsigned char>(c) > 0x20 && c != 0x7f &&
         std::string_view("%;=&,").find(c) == std::string_view::npos;
}
// In BED, blanks end fields, and readers skip lines that begin with '#', "track" or "browser".
std::string bed_name(std::string_view name) {
  std::string out;
  if (name.starts_with('#') || name.starts_with("track") || name.starts_with("browser")) {
    append_encoded(out, name.substr(0, 1), [](char) { return false; });
    name.remove_prefix(1);
  }
  append_encoded(out, name,
                 [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7f; });
  return out;
}

std::unexpected<Error> changed_sequences(const std::string& name) {
  return fail(ErrorCode::kInput, "the sequences are not those that were searched: " + name, {},
              "do not change the file during a search");
}

std::string e_value_text(double value) {
  std::string text;
  text::append(text, text::general(value, 0, 3));
  return text;
}

}  // namespace

Result<Clans> read_clans(const std::string& path) {
  HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(path));
  ColumnReader rows(std::move(source));
  Clans clans;
  for (;;) {
    HMMJIT_ASSIGN(const bool more, rows.next());
    if (!more) return clans;
    const std::vector<std::string_view>& fields = rows.columns();
    if (fields.size() != 2 && fields.size() < 4)
      return fail(ErrorCode::kInput,
                  "a line of clans has two columns, or the five of Pfam-A.clans.tsv", rows.where(),
                  "give Pfam-A.clans.tsv, or a model and its clan by a tab");
    if (fields[1].empty() || fields[1] == "\\N") continue;
    clans.insert_or_assign(std::string(fields[0]), fields[1]);  // a name may have a dot
    clans.emplace(without_version(fields[0]), fields[1]);
    if (fields.size() >= 4 && !fields[3].empty()) clans.emplace(fields[3], fields[1]);
  }
}

Result<std::unique_ptr<FeatureWriter>> FeatureWriter::create(const FeaturePaths& paths,
                                                             OverlapRule rule,
                                                             std::uint64_t memory) {
  std::unique_ptr<FeatureWriter> writer(new FeatureWriter(std::move(rule), memory));
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
  const auto model = static_cast<std::uint32_t>(result.index);
  if (models_.size() <= model) models_.resize(model + 1);
  Model& added = models_[model];
  added.name = result.model.name;
  added.accession = result.model.accession.value_or("");
  if (rule_.clans) {
    auto clan = rule_.clans->find(without_version(added.accession));
    if (added.accession.empty() || clan == rule_.clans->end()) clan = rule_.clans->find(added.name);
    if (clan != rule_.clans->end()) added.clan = clan->second;
  }
  return for_each_lot(result, [&](const HitLot& lot) -> Status {
    for (const Hit& hit : lot.hits) HMMJIT_TRY(add_hit(hit, result.hits, model));
    return {};
  });
}

Status FeatureWriter::add_hit(const Hit& hit, const HitList& sums, std::uint32_t model) {
  if (!hit.flags.reported) return {};
  if (!hit.flags.included) {
    reported_ += static_cast<std::uint64_t>(hit.reported_domains);
    return {};
  }
  Target target{.index = hit.index, .name = hit.name, .length = hit.length, .features = {}};
  for_each_reported_domain(hit, [&](const domain::Domain& domain, int number, bool included) {
    ++reported_;
    if (!included) return;
    const bool bottom = domain.iali > domain.jali;
    target.features.push_back({model, number, reported_ - 1, domain.ienv, domain.jenv, domain.iali,
                               domain.jali, domain.hmm_from, domain.hmm_to, domain.log_p,
                               independent_e_value(domain, sums), domain.bits,
                               !rule_.nucleotides ? '.' : bottom ? '-' : '+'});
    Feature& feature = target.features.back();
    if (bottom) std::swap(feature.env_from, feature.env_to);
    if (bottom) std::swap(feature.ali_from, feature.ali_to);
  });
  return targets_.add(std::move(target));
}

void FeatureWriter::ByTarget::encode(const Target& target, std::string& out) {
  put_count(out, target.index);
  put_text(out, target.name);
  put_count(out, static_cast<std::uint64_t>(target.length));
  for (const Feature& feature : target.features) put_bytes(out, feature);
}

bool FeatureWriter::ByTarget::decode(Decoder& decoder, Target& target) {
  target.index = decoder.count();
  target.name = decoder.text();
  target.length = decoder.integer();
  target.features.clear();
  while (decoder.left() > 0 && decoder.ok()) target.features.push_back(decoder.bytes<Feature>());
  return decoder.ok();
}

Result<bool> FeatureWriter::next(Target& target) {
  std::vector<Target> of_models;
  HMMJIT_ASSIGN(const bool more, targets_.next_group(of_models));
  if (!more) return false;
  target = std::move(of_models.front());
  for (std::size_t i = 1; i < of_models.size(); ++i)
    std::ranges::copy(of_models[i].features, std::back_inserter(target.features));
  resolve(target.features);
  return true;
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
    // By first residue, because a target may have very many: only features that begin at most
    // `longest` before a feature, or within it, can overlap it.
    std::multimap<int, Feature> kept;
    int longest = 0;
    for (const Feature& feature : features) {
      const auto beats = [&](const auto& better) { return compete(feature, better.second); };
      if (std::any_of(kept.lower_bound(feature.env_from - longest),
                      kept.upper_bound(feature.env_to), beats))
        continue;
      kept.emplace(feature.env_from, feature);
      longest = std::max(longest, feature.env_to - feature.env_from);
    }
    features.clear();
    for (const auto& [from, best] : kept) features.push_back(best);
  }
  std::ranges::sort(features, {}, [](const Feature& f) {
    return std::tuple(f.env_from, f.env_to, f.model, f.number);
  });
}

Status FeatureWriter::write(TargetSource* targets, const Alphabet& alphabet) {
  constexpr std::size_t kBlockResidues = std::size_t{1} << 20;
  const bool sequences = fasta_ || domain_fasta_;
  if (gff_) gff_->write("##gff-version 3\n");
  std::uint64_t number = 0;
  TargetBlock block;
  Target target;
  HMMJIT_TRY(targets_.begin());
  for (;;) {
    HMMJIT_ASSIGN(const bool more, next(target));
    if (!more) break;
    if (rule_.resolve) {
      kept_.resize(reported_);
      for (const Feature& feature : target.features) kept_[feature.place] = true;
    }
    HMMJIT_TRY(write_rows(target, number));
    if (!sequences) continue;
    while (target.index >= block.first_index() + block.size()) {
      block = {};
      HMMJIT_ASSIGN(const bool further, targets->next(block, kBlockResidues));
      if (!further) return changed_sequences(target.name);
    }
    HMMJIT_TRY(write_sequences(target, block, alphabet));
  }
  if (rule_.resolve) kept_.resize(reported_);
  for (auto* file : {&gff_, &bed_, &fasta_, &domain_fasta_}) {
    if (*file) HMMJIT_TRY((*file)->flush());
  }
  return {};
}

Status FeatureWriter::write_rows(const Target& target, std::uint64_t& number) {
  if (target.features.empty()) return {};
  std::string name;
  append_encoded(name, target.name, in_gff_identifier);
  if (gff_) gff_->write(fmt::format("##sequence-region {} 1 {}\n", name, target.length));
  for (const Feature& f : target.features) {
    const Model& model = models_[f.model];
    const std::string e_value = e_value_text(f.i_evalue);
    if (gff_) {
      std::string line =
          fmt::format("{}\thmmjit\t{}\t{}\t{}\t{}\t{}\t.\tID=match{};Name=", name,
                      rule_.nucleotides ? "nucleotide_match" : "protein_hmm_match", f.env_from,
                      f.env_to, e_value, f.strand, ++number);
      append_encoded(line, model.name, in_gff_attribute);
      line += ";Target=";
      append_encoded(line, model.name, in_gff_attribute);
      fmt::format_to(std::back_inserter(line), " {} {}", f.hmm_from, f.hmm_to);
      if (!model.accession.empty()) {
        line += ";accession=";
        append_encoded(line, model.accession, in_gff_attribute);
      }
      if (!model.clan.empty()) {
        line += ";clan=";
        append_encoded(line, model.clan, in_gff_attribute);
      }
      fmt::format_to(std::back_inserter(line), ";aligned_from={};aligned_to={};bits=", f.ali_from,
                     f.ali_to);
      text::append(line, text::fixed(f.bits, 0, 1));
      gff_->write(line + "\n");
      HMMJIT_TRY(gff_->status());
    }
    if (bed_) {
      std::string line = bed_name(target.name);
      fmt::format_to(std::back_inserter(line), "\t{}\t{}\t", f.env_from - 1, f.env_to);
      line += bed_name(model.name);
      const int score = static_cast<int>(std::clamp(f.bits, 0.0f, 1000.0f));
      fmt::format_to(std::back_inserter(line), "\t{}\t{}\t{}\t", score, f.strand, e_value);
      text::append(line, text::fixed(f.bits, 0, 1));
      bed_->write(line + "\n");
      HMMJIT_TRY(bed_->status());
    }
  }
  return {};
}

Status FeatureWriter::write_sequences(const Target& target, const TargetBlock& block,
                                      const Alphabet& alphabet) {
  const std::size_t place = target.index - block.first_index();
  const TargetView view = block[place];
  if (view.name != target.name || view.length() != target.length)
    return changed_sequences(target.name);
  ResidueCopies copies;
  HMMJIT_ASSIGN(const std::span<const Residue> residues, copies.of(block, place, alphabet));
  const auto write = [&](TextOutput& file, std::string_view head,
                         std::span<const Residue> part) -> Status {
    std::string text = fmt::format(">{}", head);
    if (!view.description.empty()) (text += ' ') += view.description;
    text += '\n';
    // Bounds the text in memory for a long target.
    constexpr std::size_t kAtOnce = 4096 * kFastaColumns;
    for (std::size_t at = 0; at < part.size(); at += kAtOnce) {
      append_fasta(text, part.subspan(at, std::min(kAtOnce, part.size() - at)), alphabet);
      file.write(text);
      HMMJIT_TRY(file.status());
      text.clear();
    }
    return {};
  };
  if (fasta_) HMMJIT_TRY(write(*fasta_, view.name, residues));
  if (!domain_fasta_) return {};
  for (const Feature& f : target.features) {
    const bool bottom = f.strand == '-';
    const std::string head = fmt::format(
        "{}/{}-{} {} {}", view.name, bottom ? f.env_to : f.env_from, bottom ? f.env_from : f.env_to,
        models_[f.model].name, e_value_text(f.i_evalue));
    const auto part = residues.subspan(static_cast<std::size_t>(f.env_from - 1),
                                       static_cast<std::size_t>(f.env_to - f.env_from + 1));
    HMMJIT_TRY(bottom ? write(*domain_fasta_, head, nucleotide::reverse_complement(part))
                      : write(*domain_fasta_, head, part));
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
