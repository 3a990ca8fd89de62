#include "parts/part_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "core/text_fields.hpp"

namespace hmmjit::parts {
namespace {

// Names of the settings, as shown in messages.
constexpr std::string_view kResult = "result version", kAlphabet = "alphabet",
                           kTargets = "targets reported", kDomains = "domains reported",
                           kTargetsIncluded = "targets included",
                           kDomainsIncluded = "domains included", kCutoffs = "model cutoffs",
                           kCoverage = "model coverage", kZ = "Z", kDomZ = "domZ", kF1 = "F1",
                           kF2 = "F2", kF3 = "F3", kBias = "bias filter",
                           kNull2 = "null2 correction", kSeed = "seed", kView = "view",
                           kAlignments = "alignments", kDatabase = "database",
                           kCount = "targets of the database",
                           kResidues = "residues of the database";
constexpr std::string_view kByTargets = "number of targets",
                           kByReported = "number of reported targets";
constexpr std::string_view kCutoffNames[] = {"none", "GA", "NC", "TC", "table"};

// The shortest text that reads back as the same value.
std::string exact(double value) { return fmt::format("{}", value); }

std::string rule_text(const Threshold& rule) {
  return rule.score ? "score >= " + exact(*rule.score) : "E-value <= " + exact(rule.e_value);
}

template <typename Number>
bool parse_whole(std::string_view text, Number& value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool parse_number(std::string_view text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_rule(std::string_view text, Threshold& rule) {
  constexpr std::string_view kScore = "score >= ", kE = "E-value <= ";
  if (text.starts_with(kScore))
    return parse_number(text.substr(kScore.size()), rule.score.emplace());
  return text.starts_with(kE) && parse_number(text.substr(kE.size()), rule.e_value);
}

bool parse_space(std::string_view text, std::string_view counted, std::optional<double>& value) {
  return text == counted || parse_number(text, value.emplace());
}

bool parse_choice(std::string_view text, std::string_view yes, std::string_view no, bool& value) {
  value = text == yes;
  return value || text == no;
}

// Takes the next line from `text` and splits it into name and value.
std::pair<std::string_view, std::string_view> take_setting(std::string_view* text) {
  const std::string_view line = take_line(text);
  const std::size_t colon = std::min(line.find(": "), line.size());
  return {line.substr(0, colon), line.substr(std::min(colon + 2, line.size()))};
}

std::string table_digest(const CutoffTable& table) {
  std::string bytes;
  for (const auto& [model, cutoff] : table) {
    put_text(bytes, model);
    put_bytes(bytes, cutoff);
  }
  return digest_of(bytes).hex();
}

}  // namespace

std::string PartSettings::text() const {
  std::string out;
  const auto line = [&out](std::string_view name, const std::string& value) {
    ((out += name) += ": ") += value;
    out += '\n';
  };
  line(kResult, std::to_string(result_version));
  line(kDatabase, fmt::format("{:016x}", database_identity));
  line(kCount, std::to_string(targets));
  line(kResidues, std::to_string(residues));
  line(kAlphabet, std::string(alphabet_of(alphabet).name));
  line(kTargets, rule_text(thresholds.target));
  line(kDomains, rule_text(thresholds.domain));
  line(kTargetsIncluded, rule_text(thresholds.include_target));
  line(kDomainsIncluded, rule_text(thresholds.include_domain));
  std::string cutoffs(kCutoffNames[static_cast<int>(thresholds.cutoffs)]);
  if (thresholds.cutoffs == ModelCutoffs::kTable)
    (cutoffs += ' ') += thresholds.table ? table_digest(*thresholds.table) : table;
  line(kCutoffs, cutoffs);
  if (thresholds.min_coverage > 0) line(kCoverage, exact(thresholds.min_coverage));
  line(kZ, thresholds.Z ? exact(*thresholds.Z) : std::string(kByTargets));
  line(kDomZ, thresholds.domZ ? exact(*thresholds.domZ) : std::string(kByReported));
  line(kF1, exact(filters.F1));
  line(kF2, exact(filters.F2));
  line(kF3, exact(filters.F3));
  line(kBias, filters.bias ? "on" : "off");
  line(kNull2, null2 ? "on" : "off");
  line(kSeed, std::to_string(seed));
  line(kView, scan ? "hmmscan" : "hmmsearch");
  line(kAlignments, alignments ? "kept" : "left out");
  return out;
}

Result<PartSettings> PartSettings::parse(std::string_view text) {
  PartSettings s;
  std::map<std::string_view, std::string_view> lines;
  while (!text.empty()) lines.insert(take_setting(&text));
  const auto value = [&](std::string_view name) { return lines[name]; };
  Thresholds& t = s.thresholds;
  bool ok =
      parse_whole(value(kResult), s.result_version) &&
      parse_whole(value(kDatabase), s.database_identity, 16) &&
      parse_whole(value(kCount), s.targets) && parse_whole(value(kResidues), s.residues) &&
      parse_rule(value(kTargets), t.target) && parse_rule(value(kDomains), t.domain) &&
      parse_rule(value(kTargetsIncluded), t.include_target) &&
      parse_rule(value(kDomainsIncluded), t.include_domain) &&
      parse_space(value(kZ), kByTargets, t.Z) && parse_space(value(kDomZ), kByReported, t.domZ) &&
      (!lines.contains(kCoverage) || parse_number(value(kCoverage), t.min_coverage)) &&
      parse_number(value(kF1), s.filters.F1) && parse_number(value(kF2), s.filters.F2) &&
      parse_number(value(kF3), s.filters.F3) &&
      parse_choice(value(kBias), "on", "off", s.filters.bias) &&
      parse_choice(value(kNull2), "on", "off", s.null2) && parse_whole(value(kSeed), s.seed) &&
      parse_choice(value(kView), "hmmscan", "hmmsearch", s.scan) &&
      parse_choice(value(kAlignments), "kept", "left out", s.alignments);
  const std::string_view name = value(kCutoffs);
  const std::size_t blank = std::min(name.find(' '), name.size());
  const auto cutoffs = std::ranges::find(kCutoffNames, name.substr(0, blank));
  s.table = name.substr(std::min(blank + 1, name.size()));
  ok = ok && cutoffs != std::end(kCutoffNames);
  if (ok) t.cutoffs = static_cast<ModelCutoffs>(cutoffs - std::begin(kCutoffNames));
  bool known = false;
  for (const AlphabetType type : {AlphabetType::kRna, AlphabetType::kDna, AlphabetType::kAmino}) {
    if (value(kAlphabet) != alphabet_of(type).name) continue;
    s.alphabet = type;
    known = true;
  }
  if (!ok || !known) return fail(ErrorCode::kInput, "its settings cannot be read");
  return s;
}

std::optional<SettingDifference> first_difference(std::string_view text, std::string_view other) {
  while (!text.empty() || !other.empty()) {
    const auto [name, value] = take_setting(&text);
    const auto [other_name, other_value] = take_setting(&other);
    if (name == other_name && value == other_value) continue;
    return SettingDifference{std::string(name.empty() ? other_name : name), std::string(value),
                             std::string(other_value)};
  }
  return std::nullopt;
}

std::string Share::text() const {
  return first == last ? fmt::format("{}/{}", first, of) : fmt::format("{}-{}/{}", first, last, of);
}

Result<Share> parse_share(std::string_view text, const std::string& option) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::string_view range = text.substr(0, slash);
  const std::size_t dash = std::min(range.find('-'), range.size());
  Share share;
  const bool ok = slash < text.size() && parse_whole(text.substr(slash + 1), share.of) &&
                  parse_whole(range.substr(0, dash), share.first) &&
                  (dash == range.size() ? (share.last = share.first, true)
                                        : parse_whole(range.substr(dash + 1), share.last)) &&
                  share.first >= 1 && share.first <= share.last && share.last <= share.of;
  if (!ok)
    return fail(ErrorCode::kUsage, fmt::format("\"{}\" is no share", text), option,
                "write " + option + " I/N with I from 1 to N, such as " + option + " 3/64");
  return share;
}

void ModelHead::add(const ModelHead& other) {
  HitCounts::operator+=(other);
  domains += other.domains;
  hit_bytes += other.hit_bytes;
  cpu_seconds += other.cpu_seconds;
  seconds = std::max(seconds, other.seconds);
}

ModelThresholds ModelHead::thresholds(const Thresholds& rules) const {
  ModelThresholds found{rules, false, M};
  if (!cutoff) return found;
  found.cutoffs = true;
  found.rules.target.score = found.rules.include_target.score = cutoff->sequence;
  found.rules.domain.score = found.rules.include_domain.score = cutoff->domain;
  return found;
}

Digest model_digest(const Hmm& hmm) {
  std::string bytes;
  const auto floats = [&](const auto& values) {
    put_count(bytes, values.size());
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  };
  const auto text = [&](const std::optional<std::string>& value) {
    put_count(bytes, value.has_value());
    if (value) put_text(bytes, *value);
  };
  const auto cutoff = [&](const std::optional<Cutoff>& value) {
    put_count(bytes, value.has_value());
    if (value) put_bytes(bytes, *value);
  };
  put_text(bytes, hmm.name);
  text(hmm.accession);
  text(hmm.description);
  put_count(bytes, static_cast<std::uint64_t>(hmm.M));
  put_count(bytes, static_cast<std::uint64_t>(hmm.alphabet->type));
  floats(hmm.match);
  floats(hmm.insert);
  floats(hmm.transition);
  floats(hmm.compo);
  for (const std::string* line : {&hmm.consensus, &hmm.rf, &hmm.mm, &hmm.cs})
    put_text(bytes, *line);
  cutoff(hmm.ga);
  cutoff(hmm.tc);
  cutoff(hmm.nc);
  // An imported model's calibration follows from the rest.
  put_count(bytes, hmm.needs_calibration);
  if (!hmm.needs_calibration) put_bytes(bytes, hmm.calibration);
  return digest_of(bytes);
}

void encode_head(const ModelHead& head, bool describe, std::string& content, std::string& rest) {
  put_count(content, head.index);
  put_bytes(content, head.model);
  put_text(content, head.name);
  put_count(content, static_cast<std::uint64_t>(head.M));
  put_count(content, (head.cutoff ? 1u : 0u) | (describe && head.accession ? 2u : 0u) |
                         (describe && head.description ? 4u : 0u));
  if (head.cutoff) put_bytes(content, *head.cutoff);
  if (describe) {
    if (head.accession) put_text(content, *head.accession);
    if (head.description) put_text(content, *head.description);
    put_text(content, head.consensus);
  }
  const FilterCounters& c = head.counters;
  for (const std::uint64_t count :
       {c.targets, c.residues, c.msv, c.bias, c.viterbi, c.forward, head.candidates, head.reported,
        head.included, head.domains, head.hit_bytes, head.longest_name, head.longest_accession,
        head.longest_shown})
    put_count(content, count);
  put_count(rest, head.block);
  put_count(rest, head.offset);
  put_bytes(rest, static_cast<float>(head.cpu_seconds));
  put_bytes(rest, static_cast<float>(head.seconds));
}

bool decode_head(Decoder& decoder, bool describe, ModelHead& head) {
  head = {};
  head.index = decoder.count();
  head.model = decoder.bytes<Digest>();
  head.name = decoder.text();
  head.M = decoder.integer();
  const auto flags = decoder.count_up_to<unsigned>(7);
  if (flags & 1u) head.cutoff = decoder.bytes<Cutoff>();
  if (describe) {
    if (flags & 2u) head.accession = decoder.text();
    if (flags & 4u) head.description = decoder.text();
    head.consensus = decoder.text();
  }
  FilterCounters& c = head.counters;
  for (std::uint64_t* count :
       {&c.targets, &c.residues, &c.msv, &c.bias, &c.viterbi, &c.forward, &head.candidates,
        &head.reported, &head.included, &head.domains, &head.hit_bytes, &head.longest_name,
        &head.longest_accession, &head.longest_shown})
    *count = decoder.count();
  head.block = decoder.count();
  head.offset = decoder.count();
  head.cpu_seconds = static_cast<double>(decoder.bytes<float>());
  head.seconds = static_cast<double>(decoder.bytes<float>());
  return decoder.ok() && head.M > 0;
}

std::string encode_origin(const PartOrigin& origin) {
  std::string out;
  for (const std::string* text : {&origin.program, &origin.host, &origin.device, &origin.date,
                                  &origin.model_file, &origin.target_file})
    put_text(out, *text);
  put_count(out, origin.options.size());
  for (const auto& [name, value] : origin.options) {
    put_text(out, name);
    put_text(out, value);
  }
  return out;
}

bool decode_origin(std::string_view bytes, PartOrigin& origin) {
  Decoder decoder(bytes);
  for (std::string* text : {&origin.program, &origin.host, &origin.device, &origin.date,
                            &origin.model_file, &origin.target_file})
    *text = decoder.text();
  std::uint64_t count = decoder.count();
  for (; count > 0 && decoder.ok(); --count) {
    auto& [name, value] = origin.options.emplace_back();
    name = decoder.text();
    value = decoder.text();
  }
  return decoder.ok() && decoder.left() == 0;
}

}  // namespace hmmjit::parts
