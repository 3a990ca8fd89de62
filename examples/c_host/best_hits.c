/* Prints the best target of every profile: libhmmjit from C. */
#include <hmmjit/hmmjit.h>
#include <signal.h>
#include <stdio.h>

static hmmjit_cancellation *cancellation;

static void on_interrupt(int number) {
  (void)number;
  hmmjit_cancellation_cancel(cancellation);
}

/* Called in the order of the profiles, one at a time. */
static int32_t print_best(void *context, const hmmjit_result *result) {
  hmmjit_result_info info = {.size = sizeof info};
  hmmjit_hit best = {.size = sizeof best};
  long *with_hits = context;
  if (hmmjit_result_get_info(result, &info, NULL) != HMMJIT_OK) return 1;
  if (info.reported == 0) {
    printf("%-20s -\n", info.model_name);
    return 0;
  }
  if (hmmjit_result_get_hits(result, 0, 1, &best, NULL) != HMMJIT_OK) return 1;
  ++*with_hits;
  printf("%-20s %-24s %8.1f bits  E %-9.2g  %zu domain(s)\n", info.model_name, best.name, best.score,
         best.e_value, best.domains);
  return 0;
}

int main(int argc, char **argv) {
  hmmjit_models *models = NULL;
  hmmjit_targets *targets = NULL;
  hmmjit_results *results = NULL;
  hmmjit_error *error = NULL;
  hmmjit_search_options options = {.size = sizeof options};
  hmmjit_search_statistics statistics = {.size = sizeof statistics};
  hmmjit_callbacks callbacks = {.size = sizeof callbacks};
  long with_hits = 0;
  int32_t status;

  if (argc != 3) {
    fprintf(stderr, "usage: %s PROFILES SEQUENCES\n", argv[0]);
    return HMMJIT_USAGE;
  }
  (status = hmmjit_cancellation_create(&cancellation, &error)) != HMMJIT_OK ||
      (status = hmmjit_models_from_file(argv[1], &models, &error)) != HMMJIT_OK ||
      (status = hmmjit_targets_from_file(argv[2], NULL, &targets, &error)) != HMMJIT_OK ||
      (status = hmmjit_search_options_init(&options, &error));
  if (status == HMMJIT_OK) {
    options.E = 1e-3;
    options.keep_alignments = 0;
    callbacks.context = &with_hits;
    callbacks.result = print_best;
    callbacks.cancellation = cancellation;
    signal(SIGINT, on_interrupt);
    status = hmmjit_search(models, targets, &options, &callbacks, &results, &error);
    signal(SIGINT, SIG_DFL);
  }
  if (status == HMMJIT_OK) {
    hmmjit_results_statistics(results, &statistics, NULL);
    printf("%ld of %llu profiles hit one of %llu sequences; %.2f s, %s\n", with_hits,
           (unsigned long long)statistics.models, (unsigned long long)statistics.targets,
           statistics.wall_seconds, statistics.backend);
  } else {
    fprintf(stderr, "best_hits: %s\n", hmmjit_error_text(error));
  }
  hmmjit_error_free(error);
  hmmjit_results_free(results);
  hmmjit_targets_free(targets);
  hmmjit_models_free(models);
  hmmjit_cancellation_free(cancellation);
  return status;
}
