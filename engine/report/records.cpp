#include "report/records.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/exact_text.hpp"
#include "core/json_object.hpp"
#include "report/numbers.hpp"

namespace hmmjit {
namespace {

using domain::Domain;

void append_domain(std::string& out, const Domain& domain, int number, bool included,
                   const ModelResult& result, bool alignments, bool kept) {
  const HitList& hits = result.hits;
  JsonObject object(out);
  object.number("number", number);
  object.flag("included", included);
  object.number("c_evalue", conditional_e_value(domain, hits));
  object.number("i_evalue", independent_e_value(domain, hits));
  object.number("ln_p", domain.log_p);
  object.number("score", domain.bits);
  object.number("bias", bias_bits(domain));
  object.number("hmm_from", domain.hmm_from);
  object.number("hmm_to", domain.hmm_to);
  object.number("ali_from", domain.iali);
  object.number("ali_to", domain.jali);
  object.number("env_from", domain.ienv);
  object.number("env_to", domain.jenv);
  object.number("accuracy", mean_accuracy(domain));
  object.number("model_coverage", model_coverage(domain, result.model.M));
  if (kept) object.member("kept") += kKeptLater;
  if (alignments) {
    const domain::Alignment& a = domain.alignment;
    JsonObject strings = object.object("alignment");
    if (!a.rf.empty()) strings.text("rf", a.rf);
    if (!a.cs.empty()) strings.text("cs", a.cs);
    strings.text("model", a.model);
    strings.text("match", a.match);
    strings.text("target", a.sequence);
    strings.text("pp", a.pp);
    strings.close();
  }
  object.close();
}

constexpr std::string_view kTargetColumns =
    "target\ttarget_accession\ttarget_length\ttarget_index\tmodel\tmodel_accession\tmodel_length"
    "\tmodel_index\tevalue\tscore\tbias\tincluded";

// Appends the fields of lines, separated by tabs.
class Columns {
 public:
  explicit Columns(std::string& out) : out_(out) {}
  void text(std::string_view value) {
    separate();
    text::tsv_field(out_, value);
  }
  void byte(char value) {
    separate();
    out_ += value;
  }
  template <typename Integer>
  void integer(Integer value) {
    separate();
    out_ += std::to_string(value);
  }
  template <typename Real>
  void real(Real value) {
    separate();
    text::exact(out_, value);
  }
  void end() {
    out_ += '\n';
    first_ = true;
  }

 private:
  void separate() {
    if (!std::exchange(first_, false)) out_ += '\t';
  }
  std::string& out_;
  bool first_ = true;
};

void append_target(Columns& row, const Hit& hit, const ModelResult& result) {
  row.text(hit.name);
  row.text(hit.accession);
  row.integer(hit.length);
  row.integer(hit.index);
  row.text(result.model.name);
  row.text(result.model.accession.value_or(""));
  row.integer(result.model.M);
  row.integer(result.index);
  row.real(target_e_value(hit, result.hits));
  row.real(hit.score.bits);
  row.real(target_bias(hit, result));
  row.integer(static_cast<int>(hit.flags.included));
}

}  // namespace

void append_tsv_header(std::string& out, const RecordOptions& options) {
  out += kTargetColumns;
  out +=
      "\tdomain\tc_evalue\ti_evalue\tdomain_score\tdomain_bias\tdomain_included\thmm_from"
      "\thmm_to\tali_from\tali_to\tenv_from\tenv_to\taccuracy\tln_p\tdescription\tmodel_coverage";
  if (options.kept) out += "\tkept";
  if (!options.target_file.empty()) out += "\ttarget_file";
  out += '\n';
}

void append_tsv(std::string& out, const HitLot& lot, const RecordOptions& options) {
  const ModelResult& result = lot.result;
  const HitList& hits = result.hits;
  for (const Hit& hit : lot.hits) {
    if (!hit.flags.reported) continue;
    Columns row(out);
    for_each_reported_domain(hit, [&](const Domain& domain, int number, bool included) {
      append_target(row, hit, result);
      row.integer(number);
      row.real(conditional_e_value(domain, hits));
      row.real(independent_e_value(domain, hits));
      row.real(domain.bits);
      row.real(bias_bits(domain));
      row.integer(static_cast<int>(included));
      for (const int place : {domain.hmm_from, domain.hmm_to, domain.iali, domain.jali, domain.ienv,
                              domain.jenv})
        row.integer(place);
      row.real(mean_accuracy(domain));
      row.real(hit.score.log_p);
      row.text(hit.description);
      row.real(model_coverage(domain, result.model.M));
      if (options.kept) row.byte(kKeptLater);
      if (!options.target_file.empty()) row.text(options.target_file);
      row.end();
    });
  }
}

void append_target_tsv_header(std::string& out, const RecordOptions& options) {
  (out += kTargetColumns) += "\tdomains\tdomains_included\tln_p\tdescription";
  if (!options.target_file.empty()) out += "\ttarget_file";
  out += '\n';
}

void append_target_tsv(std::string& out, const HitLot& lot, const RecordOptions& options) {
  for (const Hit& hit : lot.hits) {
    if (!hit.flags.reported) continue;
    Columns row(out);
    append_target(row, hit, lot.result);
    row.integer(hit.reported_domains);
    row.integer(hit.included_domains);
    row.real(hit.score.log_p);
    row.text(hit.description);
    if (!options.target_file.empty()) row.text(options.target_file);
    row.end();
  }
}

void append_json_query(std::string& out, const ModelResult& result, const RecordOptions& options) {
  const HitList& hits = result.hits;
  JsonObject object(out);
  object.text("record", options.by_sequence ? "sequence" : "model");
  object.number("index", result.index);
  object.text("name", result.model.name);
  object.optional_text("accession", result.model.accession.value_or(""));
  object.optional_text("description", result.model.description.value_or(""));
  object.number("length", result.model.M);
  object.number("Z", hits.Z);
  object.number("domZ", hits.domZ);
  object.number(options.by_sequence ? "models" : "targets", hits.counters.targets);
  object.number(options.by_sequence ? "positions" : "residues", hits.counters.residues);
  JsonObject passed = object.object("passed");
  passed.number("msv", hits.counters.msv);
  passed.number("bias", hits.counters.bias);
  passed.number("viterbi", hits.counters.viterbi);
  passed.number("forward", hits.counters.forward);
  passed.close();
  object.number("targets_reported", hits.reported);
  object.number("targets_included", hits.included);
  if (!options.target_file.empty()) object.text("target_file", options.target_file);
  object.close();
  out += '\n';
}

void append_json_targets(std::string& out, const HitLot& lot, bool alignments,
                         const RecordOptions& options) {
  const ModelResult& result = lot.result;
  const HitList& hits = result.hits;
  for (const Hit& hit : lot.hits) {
    if (!hit.flags.reported) continue;
    JsonObject object(out);
    object.text("record", "target");
    object.text("model", result.model.name);
    object.number("model_index", result.index);
    if (options.by_sequence) {
      object.optional_text("model_accession", result.model.accession.value_or(""));
      object.number("model_length", result.model.M);
    }
    object.text("name", hit.name);
    object.optional_text("accession", hit.accession);
    object.optional_text("description", hit.description);
    object.number("index", hit.index);
    object.number("length", hit.length);
    object.flag("included", hit.flags.included);
    object.number("evalue", target_e_value(hit, hits));
    object.number("ln_p", hit.score.log_p);
    object.number("score", hit.score.bits);
    object.number("bias", target_bias(hit, result));
    object.number("expected_domains", hit.score.expected_domains);
    object.number("regions", hit.score.regions);
    object.number("clustered", hit.score.clustered);
    object.number("overlaps", hit.score.overlaps);
    object.number("envelopes", hit.score.envelopes);
    object.number("domains_found", hit.score.domains.size());
    object.member("domains") += '[';
    for_each_reported_domain(hit, [&](const Domain& domain, int number, bool included) {
      if (number > 1) out += ',';
      append_domain(out, domain, number, included, result, alignments, options.kept);
    });
    out += ']';
    if (!options.target_file.empty()) object.text("target_file", options.target_file);
    object.close();
    out += '\n';
  }
}

void RunTotals::add(const ModelResult& result) {
  ++models;
  targets = result.hits.counters.targets;
  residues = result.hits.counters.residues;
  targets_reported += result.hits.reported;
  targets_included += result.hits.included;
}

void RunTotals::add_domains(std::span<const Hit> hits) {
  for (const Hit& hit : hits) {
    domains_reported += static_cast<std::uint64_t>(hit.reported_domains);
    domains_included += static_cast<std::uint64_t>(hit.included_domains);
  }
}

void RunTotals::add(const RunTotals& other) {
  models += other.models;
  targets = std::max(targets, other.targets);
  residues = std::max(residues, other.residues);
  targets_reported += other.targets_reported;
  targets_included += other.targets_included;
  domains_reported += other.domains_reported;
  domains_included += other.domains_included;
}

void append_json_run(std::string& out, const RunDescription& run, const RunTotals& totals) {
  JsonObject object(out);
  object.text("record", "run");
  object.text("program", run.program);
  object.text("version", run.version);
  object.text("model_file", run.query_file);
  object.text("target_file", run.target_file);
  object.text("options", run.option_settings);
  object.text("folder", run.folder);
  object.text("date", run.date);
  object.number("models", run.by_sequence ? totals.targets : totals.models);
  object.number("targets", run.by_sequence ? totals.models : totals.targets);
  object.number(run.by_sequence ? "positions" : "residues", totals.residues);
  object.number("targets_reported", totals.targets_reported);
  object.number("targets_included", totals.targets_included);
  object.number("domains_reported", totals.domains_reported);
  object.number("domains_included", totals.domains_included);
  object.close();
  out += '\n';
}

}  // namespace hmmjit
