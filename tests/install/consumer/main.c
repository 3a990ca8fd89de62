#include <hmmjit/hmmjit.h>
#include <stdio.h>

/* usage: consumer_c MODELS TARGETS */
int main(int argc, char **argv) {
  hmmjit_models *models = NULL;
  hmmjit_targets *targets = NULL;
  hmmjit_results *results = NULL;
  hmmjit_error *error = NULL;
  if (argc != 3) return 2;
  if (hmmjit_models_from_file(argv[1], &models, &error) != HMMJIT_OK ||
      hmmjit_targets_from_file(argv[2], NULL, &targets, &error) != HMMJIT_OK ||
      hmmjit_search(models, targets, NULL, NULL, &results, &error) != HMMJIT_OK) {
    fprintf(stderr, "%s\n", hmmjit_error_text(error));
    return 1;
  }
  printf("%s %zu models\n", hmmjit_version(), hmmjit_results_count(results));
  hmmjit_results_free(results);
  hmmjit_targets_free(targets);
  hmmjit_models_free(models);
  return 0;
}
