// The C interface: models from sequences and alignments, searches in rounds.
#include "api/c_support.hpp"

using namespace hmmjit::c_interface;

struct hmmjit_iteration : Handle<hmmjit::IterativeSearch> {};
struct hmmjit_round {
  hmmjit::Round value;
  hmmjit_result result;
};
struct hmmjit_rounds {
  std::vector<hmmjit_round> rounds;
};

extern "C" {

int32_t hmmjit_build_options_init(hmmjit_build_options* options, hmmjit_error** error) {
  return run(error, [&] { write(options, hmmjit::BuildOptions()); });
}
int32_t hmmjit_build_models(const hmmjit_targets* sequences, const hmmjit_build_options* options,
                            hmmjit_models** out, hmmjit_error** error) {
  return run(error, [&] {
    give(out, hmmjit::build_models(object(sequences, "sequences"),
                                   read(options, hmmjit::BuildOptions())));
  });
}
int32_t hmmjit_build_from_alignments(const char* path, const char* format,
                                     const hmmjit_build_options* options, hmmjit_models** out,
                                     hmmjit_error** error) {
  return run(error, [&] {
    give(out, hmmjit::build_from_alignments(
                  &required(path, "path"), read(options, hmmjit::BuildOptions()), text_of(format)));
  });
}
int32_t hmmjit_build_from_alignment_memory(const void* bytes, size_t size, const char* format,
                                           const char* name, const hmmjit_build_options* options,
                                           hmmjit_models** out, hmmjit_error** error) {
  return run(error, [&] {
    give(out, hmmjit::build_from_alignment_text(
                  view_of(bytes, size), read(options, hmmjit::BuildOptions()), text_of(format),
                  name != nullptr ? name : "memory"));
  });
}

// ---- searches in rounds -----------------------------------------------------------------------

int32_t hmmjit_iteration_options_init(hmmjit_iteration_options* options, hmmjit_error** error) {
  return run(error, [&] { write(options, hmmjit::IterationOptions()); });
}
int32_t hmmjit_iteration_create(const hmmjit_targets* queries, const hmmjit_targets* targets,
                                const hmmjit_iteration_options* options, hmmjit_iteration** out,
                                hmmjit_error** error) {
  return run(error, [&] {
    give(out, hmmjit::IterativeSearch(object(queries, "queries"), object(targets, "targets"),
                                      read(options, hmmjit::IterationOptions())));
  });
}
int32_t hmmjit_iteration_from_models(const hmmjit_models* queries, const hmmjit_targets* targets,
                                     const hmmjit_iteration_options* options,
                                     hmmjit_iteration** out, hmmjit_error** error) {
  return run(error, [&] {
    give(out, hmmjit::IterativeSearch(object(queries, "queries"), object(targets, "targets"),
                                      read(options, hmmjit::IterationOptions())));
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
    // Callbacks may free the handle.
    hmmjit::IterativeSearch own(object(iteration, "iteration").impl());
    for (hmmjit::Round& round : own.next(to_callbacks(c))) {
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
  return run(error, [&] { write(info, object(round, "round")); });
}
const hmmjit_result* hmmjit_round_result(const hmmjit_round* round) {
  return round != nullptr ? &round->result : nullptr;
}
int32_t hmmjit_round_model(const hmmjit_round* round, hmmjit_models** out, hmmjit_error** error) {
  return run(error, [&] {
    hmmjit::Models models;
    models.add(object(round, "round").model);
    give(out, std::move(models));
  });
}
const char* hmmjit_round_alignment(const hmmjit_round* round) {
  return round != nullptr ? round->value.alignment.c_str() : "";
}
int32_t hmmjit_report_add_iteration(hmmjit_report* report, const hmmjit_iteration* iteration,
                                    size_t query, hmmjit_error** error) {
  return run(error, [&] { object(report, "report").add(object(iteration, "iteration"), query); });
}
void hmmjit_iteration_free(hmmjit_iteration* iteration) { delete iteration; }

}  // extern "C"
