#include "report/records.hpp"

#include <algorithm>
#include <string_view>

#include "core/exact_text.hpp"
#include "core/json_object.hpp"
#include "report/numbers.hpp"

namespace hmmjit {
namespace {

using domain::Domain;

void append_domain(std::string& out, const Domain& domain, int number, bool included,
                   const HitList& hits, bool alignments) {
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

}  // namespace

void append_tsv_header(std::string& out) {
  out +=
      "target\ttarget_accession\ttarget_length\ttarget_index\tmodel\tmodel_accession\tmodel_"
      "length\t"
      "model_index\tevalue\tscore\tbias\tincluded\tdomain\tdomains\tc_evalue\ti_evalue\tdomain_"
      "score\t"
      "domain_bias\tdomain_included\thmm_from\thmm_to\tali_from\tali_to\tenv_from\tenv_"
      "to\taccuracy\t"
      "ln_p\tdescription\n";
}

void append_tsv(std::string& out, const ModelResult& result) {
  const HitList& hits = result.hits;
  const auto tab = [&out] { out += '\t'; };
  const auto field = [&](std::string_view value) {
    text::tsv_field(out, value);
    tab();
  };
  const auto integer = [&](std::uint64_t value) {
    out += std::to_string(value);
    tab();
  };
  const auto coordinate = [&](int value) { integer(static_cast<std::uint64_t>(value)); };
  const auto real = [&](auto value) {
    text::exact(out, value);
    tab();
  };
  for (const Hit& hit : hits.hits) {
    if (!hit.flags.reported) continue;
    const auto row = [&](int number, const Domain* domain, bool included) {
      field(hit.name);
      field(hit.accession);
      coordinate(hit.length);
      integer(hit.index);
      field(result.model.name);
      field(result.model.accession.value_or(""));
      coordinate(result.model.M);
      integer(result.index);
      real(target_e_value(hit, hits));
      real(hit.score.bits);
      real(target_bias(hit));
      coordinate(hit.flags.included);
      if (domain == nullptr) {
        out += "\t0\t";
        out.append(12, '\t');
      } else {
        coordinate(number);
        coordinate(hit.reported_domains);
        real(conditional_e_value(*domain, hits));
        real(independent_e_value(*domain, hits));
        real(domain->bits);
        real(bias_bits(*domain));
        coordinate(included);
        coordinate(domain->hmm_from);
        coordinate(domain->hmm_to);
        coordinate(domain->iali);
        coordinate(domain->jali);
        coordinate(domain->ienv);
        coordinate(domain->jenv);
        real(mean_accuracy(*domain));
      }
      real(hit.score.log_p);
      text::tsv_field(out, hit.description);
      out += '\n';
    };
    int number = 0;
    for (std::size_t d = 0; d < hit.score.domains.size(); ++d) {
      if (hit.domain_flags[d].reported)
        row(++number, &hit.score.domains[d], hit.domain_flags[d].included);
    }
    if (number == 0) row(0, nullptr, false);
  }
}

void append_json(std::string& out, const ModelResult& result, bool alignments) {
  append_json_model(out, result);
  append_json_targets(out, result, alignments);
}

void append_json_model(std::string& out, const ModelResult& result) {
  const HitList& hits = result.hits;
  JsonObject object(out);
  object.text("record", "model");
  object.number("index", result.index);
  object.text("name", result.model.name);
  object.optional_text("accession", result.model.accession.value_or(""));
  object.optional_text("description", result.model.description.value_or(""));
  object.number("length", result.model.M);
  object.number("Z", hits.Z);
  object.number("domZ", hits.domZ);
  object.number("targets", hits.counters.targets);
  object.number("residues", hits.counters.residues);
  JsonObject passed = object.object("passed");
  passed.number("msv", hits.counters.msv);
  passed.number("bias", hits.counters.bias);
  passed.number("viterbi", hits.counters.viterbi);
  passed.number("forward", hits.counters.forward);
  passed.close();
  object.number("targets_reported", hits.reported);
  object.number("targets_included", hits.included);
  object.close();
  out += '\n';
}

void append_json_targets(std::string& out, const ModelResult& result, bool alignments) {
  const HitList& hits = result.hits;
  for (const Hit& hit : hits.hits) {
    if (!hit.flags.reported) continue;
    JsonObject object(out);
    object.text("record", "target");
    object.text("model", result.model.name);
    object.number("model_index", result.index);
    object.text("name", hit.name);
    object.optional_text("accession", hit.accession);
    object.optional_text("description", hit.description);
    object.number("index", hit.index);
    object.number("length", hit.length);
    object.flag("included", hit.flags.included);
    object.number("evalue", target_e_value(hit, hits));
    object.number("ln_p", hit.score.log_p);
    object.number("score", hit.score.bits);
    object.number("bias", target_bias(hit));
    object.number("expected_domains", hit.score.expected_domains);
    object.number("regions", hit.score.regions);
    object.number("clustered", hit.score.clustered);
    object.number("overlaps", hit.score.overlaps);
    object.number("envelopes", hit.score.envelopes);
    object.number("domains_found", hit.score.domains.size());
    object.member("domains") += '[';
    int number = 0;
    for (std::size_t d = 0; d < hit.score.domains.size(); ++d) {
      if (!hit.domain_flags[d].reported) continue;
      if (number > 0) out += ',';
      append_domain(out, hit.score.domains[d], ++number, hit.domain_flags[d].included, hits,
                    alignments);
    }
    out += ']';
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
  add_domains(result.hits);
}

void RunTotals::add_domains(const HitList& hits) {
  for (const Hit& hit : hits.hits) {
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
  object.number("models", totals.models);
  object.number("targets", totals.targets);
  object.number("residues", totals.residues);
  object.number("targets_reported", totals.targets_reported);
  object.number("targets_included", totals.targets_included);
  object.number("domains_reported", totals.domains_reported);
  object.number("domains_included", totals.domains_included);
  object.close();
  out += '\n';
}

}  // namespace hmmjit
