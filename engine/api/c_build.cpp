// The C interface: models from sequences and alignments, searches in rounds.
#include "api/c_support.hpp"

using namespace hmmjit::c_interface;

struct hmmjit_iteration {
  hmmjit::IterativeSearch value;
};
struct hmmjit_round {
  hmmjit::Round value;
  hmmjit_result result;
};
struct hmmjit_rounds {
  std::vector<hmmjit_round> rounds;
};

namespace {

hmmjit_build_options default_build_options() {
  const hmmjit::BuildOptions d;
  hmmjit_build_options o{};
  o.size = sizeof o;
  o.gap_open = o.gap_extend = kNone;
  o.least_occupied = d.least_occupied;
  o.fragment = d.fragment;
  o.weight_identity = d.weight_identity;
  o.relative_entropy = d.relative_entropy;
  o.total_entropy = d.total_entropy;
  o.effective_identity = d.effective_identity;
  o.msv_length = d.msv_length;
  o.msv_targets = d.msv_targets;
  o.viterbi_length = d.viterbi_length;
  o.viterbi_targets = d.viterbi_targets;
  o.forward_length = d.forward_length;
  o.forward_targets = d.forward_targets;
  o.tail_mass = d.tail_mass;
  o.seed = d.seed;
  return o;
}

hmmjit::BuildOptions to_build_options(const hmmjit_build_options* given_options) {
  const hmmjit_build_options o = read(given_options, default_build_options());
  hmmjit::BuildOptions out;
  if (o.matrix != nullptr && *o.matrix != '\0') out.matrix = o.matrix;
  out.matrix_file = text_of(o.matrix_file);
  out.gap_open = given(o.gap_open);
  out.gap_extend = given(o.gap_extend);
  out.single_rows_by_matrix = o.single_rows_by_matrix != 0;
  out.columns = to_enum<hmmjit::MatchColumns>(o.columns, HMMJIT_COLUMNS_REFERENCE, "columns");
  out.least_occupied = o.least_occupied;
  out.fragment = o.fragment;
  out.weights = to_enum<hmmjit::RowWeights>(o.weights, HMMJIT_WEIGHTS_GIVEN, "weights");
  out.effective =
      to_enum<hmmjit::EffectiveNumber>(o.effective, HMMJIT_EFFECTIVE_SET, "effective number");
  out.weight_identity = o.weight_identity;
  out.effective_number = o.effective_number;
  out.relative_entropy = o.relative_entropy;
  out.total_entropy = o.total_entropy;
  out.effective_identity = o.effective_identity;
  out.prior = to_enum<hmmjit::ModelPrior>(o.prior, HMMJIT_PRIOR_LAPLACE, "prior");
  if (o.most_insertions != 0) out.most_insertions = o.most_insertions;
  out.msv_length = o.msv_length;
  out.msv_targets = o.msv_targets;
  out.viterbi_length = o.viterbi_length;
  out.viterbi_targets = o.viterbi_targets;
  out.forward_length = o.forward_length;
  out.forward_targets = o.forward_targets;
  out.tail_mass = o.tail_mass;
  out.seed = o.seed;
  out.threads = o.threads;
  return out;
}

hmmjit_iteration_options default_iteration_options() {
  const hmmjit::IterationOptions d;
  hmmjit_iteration_options o{};
  o.size = sizeof o;
  o.rounds = d.rounds;
  o.alignments = d.alignments;
  o.text_width = d.text_width;
  return o;
}

}  // namespace

extern "C" {

int32_t hmmjit_build_options_init(hmmjit_build_options* options, hmmjit_error** error) {
  return run(error, [&] { write(options, default_build_options()); });
}
int32_t hmmjit_build_models(const hmmjit_targets* sequences, const hmmjit_build_options* options,
                            hmmjit_models** out, hmmjit_error** error) {
  return run(error, [&] {
    give(out,
         hmmjit::build_models(required(sequences, "sequences").value, to_build_options(options)));
  });
}
int32_t hmmjit_build_from_alignments(const char* path, const char* format,
                                     const hmmjit_build_options* options, hmmjit_models** out,
                                     hmmjit_error** error) {
  return run(error, [&] {
    give(out, hmmjit::build_from_alignments(&required(path, "path"), to_build_options(options),
                                            text_of(format)));
  });
}
int32_t hmmjit_build_from_alignment_memory(const void* bytes, size_t size, const char* format,
                                           const char* name, const hmmjit_build_options* options,
                                           hmmjit_models** out, hmmjit_error** error) {
  return run(error, [&] {
    const auto* data = static_cast<const char*>(bytes);
    if (size > 0) required(data, "bytes");
    give(out,
         hmmjit::build_from_alignment_text({data, size}, to_build_options(options), text_of(format),
                                           name != nullptr ? name : "memory"));
  });
}

// ---- searches in rounds -----------------------------------------------------------------------

int32_t hmmjit_iteration_options_init(hmmjit_iteration_options* options, hmmjit_error** error) {
  return run(error, [&] { write(options, default_iteration_options()); });
}
int32_t hmmjit_iteration_create(const hmmjit_targets* queries, const hmmjit_targets* targets,
                                const hmmjit_iteration_options* options, hmmjit_iteration** out,
                                hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit_iteration_options o = read(options, default_iteration_options());
    hmmjit::IterationOptions to;
    if (o.search != nullptr) to.search = to_options(o.search);
    to.build = to_build_options(o.build);
    to.rounds = o.rounds;
    to.prefer_accession = o.prefer_accession != 0;
    to.alignments = o.alignments != 0;
    to.text_width = o.text_width;
    to.a3m = o.a3m != 0;
    to.alignment_file = text_of(o.alignment_file);
    give(out, hmmjit::IterativeSearch(required(queries, "queries").value,
                                      required(targets, "targets").value, to));
  });
}
size_t hmmjit_iteration_queries(const hmmjit_iteration* iteration) {
  return iteration != nullptr ? iteration->value.queries() : 0;
}
int32_t hmmjit_iteration_done(const hmmjit_iteration* iteration) {
  return iteration == nullptr || iteration->value.done();
}
int32_t hmmjit_iteration_next(hmmjit_iteration* iteration, const hmmjit_callbacks* callbacks,
                              hmmjit_rounds** out, hmmjit_error** error) {
  return run(error, [&] {
    required(out, "the handle to fill");
    const hmmjit_callbacks c = read(callbacks);
    auto rounds = std::make_unique<hmmjit_rounds>();
    for (hmmjit::Round& round : required(iteration, "iteration").value.next(to_callbacks(c))) {
      const hmmjit::ModelResult result = round.result;
      rounds->rounds.push_back({std::move(round), {result}});
    }
    *out = rounds.release();
  });
}
size_t hmmjit_rounds_count(const hmmjit_rounds* rounds) {
  return rounds != nullptr ? rounds->rounds.size() : 0;
}
const hmmjit_round* hmmjit_rounds_get(const hmmjit_rounds* rounds, size_t index) {
  return rounds != nullptr && index < rounds->rounds.size() ? &rounds->rounds[index] : nullptr;
}
void hmmjit_rounds_free(hmmjit_rounds* rounds) { delete rounds; }
int32_t hmmjit_round_get_info(const hmmjit_round* round, hmmjit_round_info* info,
                              hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::Round& r = required(round, "round").value;
    hmmjit_round_info out{};
    out.query = r.query;
    out.number = r.number;
    out.converged = r.converged;
    out.last = r.last;
    out.included = r.included;
    out.new_targets = r.new_targets;
    write(info, out);
  });
}
const hmmjit_result* hmmjit_round_result(const hmmjit_round* round) {
  return round != nullptr ? &round->result : nullptr;
}
int32_t hmmjit_round_model(const hmmjit_round* round, hmmjit_models** out, hmmjit_error** error) {
  return run(error, [&] {
    hmmjit::Models models;
    models.add(required(round, "round").value.model);
    give(out, std::move(models));
  });
}
const char* hmmjit_round_alignment(const hmmjit_round* round) {
  return round != nullptr ? round->value.alignment.c_str() : "";
}
int32_t hmmjit_report_add_iteration(hmmjit_report* report, const hmmjit_iteration* iteration,
                                    size_t query, hmmjit_error** error) {
  return run(error, [&] {
    required(report, "report").value.add(required(iteration, "iteration").value, query);
  });
}
void hmmjit_iteration_free(hmmjit_iteration* iteration) { delete iteration; }

}  // extern "C"
