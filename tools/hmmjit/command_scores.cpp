// hmmjit scores: what each filter says of each target, and which rejects it.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "build/calibration.hpp"
#include "core/json_object.hpp"
#include "hmmjit/command.hpp"
#include "io/hmm_file.hpp"
#include "io/sequence_file.hpp"
#include "model/score_statistics.hpp"
#include "output_names.hpp"
#include "parts/model_index.hpp"
#include "search/pair_scores.hpp"
#include "search_inputs.hpp"
#include "search_options.hpp"

namespace hmmjit::tools {
namespace {

// Those of search that change what its filters say.
std::vector<OptionSpec> scores_options() {
  constexpr std::string_view kOfSearch[] = {"-h",   "--tformat", "--max",     "--F1", "--F2",
                                            "--F3", "--nobias",  "--nonull2", "-Z",   "--seed"};
  std::vector<OptionSpec> out;
  std::ranges::copy_if(search_option_table(), std::back_inserter(out),
                       [&](const OptionSpec& option) {
                         return std::ranges::find(kOfSearch, option.name) != std::end(kOfSearch);
                       });
  out.push_back({kPlain, "--json", "", "print one JSON object per line and pair"});
  return out;
}

Result<std::vector<TargetBlock>> read_all_targets(const std::string& path, const Hmm& hmm,
                                                  const ParsedOptions& options) {
  SequenceFormatOptions format{.alphabet = *hmm.alphabet, .model = hmm.name};
  HMMJIT_ASSIGN(format.format, asserted_format(options, "--tformat"));
  HMMJIT_ASSIGN(SequenceReader reader, SequenceReader::open(path, format));
  std::vector<TargetBlock> out;
  for (;;) {
    TargetBlock block;
    HMMJIT_ASSIGN(const bool more, reader.read_block(block, std::uint64_t{1} << 20));
    if (!more) return out;
    out.push_back(std::move(block));
  }
}

struct ScoredPair {
  const Hmm& hmm;
  TargetView target;
  PairScores scores;
  double Z;
};

std::string pair_json(const ScoredPair& pair) {
  std::string out;
  JsonObject json(out);
  json.text("model", pair.hmm.name);
  json.text("target", pair.target.name);
  json.number("positions", pair.hmm.M);
  json.number("residues", pair.target.length());
  json.number("null_nats", pair.scores.null_nats);
  for (const FilterStep& step : pair.scores.steps) {
    JsonObject part = json.object(step.name);
    part.number("nats", step.nats);
    part.number("bits", step.bits);
    part.number("p_value", step.p);
    part.number("limit", step.limit);
    part.flag("passes", step.passes);
    part.close();
  }
  const FilterStep* rejected = pair.scores.rejected_by();
  json.optional_text("rejected_by", pair.scores.steps.empty() ? "length"
                                    : rejected == nullptr     ? ""
                                                              : rejected->name);
  if (const auto& score = pair.scores.score) {
    json.number("bits", score->bits);
    json.number("bias_bits", score->pre_bits - score->bits);
    json.number("e_value", e_value(score->log_p, pair.Z));
    json.number("domains", score->domains.size());
  }
  json.close();
  return out + '\n';
}

std::string pair_text(const ScoredPair& pair) {
  std::string out = fmt::format("{} ({} positions), {} ({} residues)\n", pair.hmm.name, pair.hmm.M,
                                pair.target.name, pair.target.length());
  if (pair.scores.steps.empty()) return out + "  no residues\n";
  out +=
      fmt::format("  {:<8} {:>10} {:>10} {:>10} {:>10}\n", "", "nats", "bits", "P-value", "limit");
  for (const FilterStep& step : pair.scores.steps)
    out += fmt::format("  {:<8} {:>10.2f} {:>10.2f} {:>10.2g} {:>10.2g}  {}\n", step.name,
                       step.nats, step.bits, step.p, step.limit,
                       step.passes ? step.p > step.limit ? "left out" : "passes" : "rejected");
  const FilterStep* rejected = pair.scores.rejected_by();
  if (const auto& score = pair.scores.score) {
    out += fmt::format("  {}score {:.1f} bits, bias {:.1f}, E-value {:.2g}, {} domain{}\n",
                       rejected == nullptr ? "" : "not searched further; otherwise ", score->bits,
                       score->pre_bits - score->bits, e_value(score->log_p, pair.Z),
                       score->domains.size(), score->domains.size() == 1 ? "" : "s");
  } else {
    out += "  no domain\n";
  }
  return out;
}

Result<int> run_scores(const ParsedOptions& options) {
  const std::string& model_file = options.arguments()[0];
  const std::string& sequence_file = options.arguments()[1];
  std::vector<NamedFile> inputs;
  parts::add_profile_files(inputs, "profile file", model_file);
  inputs.push_back({"sequence file", sequence_file});
  HMMJIT_TRY(check_inputs(inputs));

  FilterOptions filters{options.real("--F1"), options.real("--F2"), options.real("--F3"),
                        !options.is_set("--nobias")};
  if (options.is_set("--max")) filters = FilterOptions::max_sensitivity();
  domain::DomainOptions domain{.null2 = !options.is_set("--nonull2")};
  set_seed(domain, static_cast<std::uint32_t>(options.integer("--seed")));

  HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(model_file));
  HMMJIT_ASSIGN(std::optional<Hmm> hmm, reader.next());
  if (!hmm)
    return fail(ErrorCode::kInput, "the file holds no profile", reader.name(), "give profiles");
  const Alphabet* const alphabet = hmm->alphabet;
  HMMJIT_ASSIGN(const std::vector<TargetBlock> blocks,
                read_all_targets(sequence_file, *hmm, options));
  double Z = 0;
  for (const TargetBlock& block : blocks) Z += static_cast<double>(block.size());
  Z = options.given_real("-Z").value_or(Z);
  std::string out;
  while (hmm) {
    if (hmm->alphabet != alphabet)
      return fail(ErrorCode::kInput,
                  fmt::format("model {} is {}, the first one is {}", hmm->name, hmm->alphabet->name,
                              alphabet->name),
                  reader.name(), "give profiles of one alphabet");
    HMMJIT_TRY(build::calibrate_if_needed(*hmm));
    const PreparedModel model(begin_search_model(*std::move(hmm)));
    for (const TargetBlock& block : blocks) {
      for (std::size_t i = 0; i < block.size(); ++i) {
        HMMJIT_ASSIGN(PairScores scores, score_pair(model, block[i], filters, domain));
        const ScoredPair pair{model.hmm(), block[i], std::move(scores), Z};
        out += options.is_set("--json") ? pair_json(pair) : pair_text(pair);
      }
    }
    HMMJIT_ASSIGN(hmm, reader.next());
  }
  fmt::print("{}", out);
  return 0;
}

}  // namespace

CommandSpec scores_command() {
  return {"scores",
          "print what each filter of search says of each target, and which rejects it",
          {{"hmmfile", "profiles; - for standard input"},
           {"seqfile",
            "sequences, read into memory, not a .hjdb file; nucleotides as given; - for standard "
            "input"}},
          scores_options(),
          run_scores};
}

}  // namespace hmmjit::tools
