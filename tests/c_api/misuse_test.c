/* Every misuse of the C interface returns a status; none gives a signal, an exit or a hang.
 * usage: misuse_test MODELS TARGETS (files)
 *
 * null_arguments_test.py calls all functions with NULL. */
#include <math.h>
#include <pthread.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checks-inl.h"

/* Sizes that are not set, cut a member or are unrelated numbers. */
static const size_t kWrongSizes[] = {
    0, 1, 7, 9, 12, 4104, (size_t)1 << 32, (size_t)1 << 47, (size_t)-8, (size_t)-1};

/* `call` uses `given`, a struct of that type that is valid except for its size. */
#define REFUSES_SIZES(type, given, call)                               \
  do {                                                                 \
    const size_t right = (given).size;                                 \
    size_t n;                                                          \
    for (n = 0; n < sizeof kWrongSizes / sizeof kWrongSizes[0]; ++n) { \
      (given).size = kWrongSizes[n];                                   \
      GIVES(HMMJIT_USAGE, call);                                       \
    }                                                                  \
    (given).size = right;                                              \
  } while (0)
#define REFUSES_RESERVED(given, call) \
  do {                                \
    (given).reserved = 7;             \
    GIVES(HMMJIT_USAGE, call);        \
    (given).reserved = 0;             \
  } while (0)
#define REFUSES_VALUE(member, value, call)        \
  do {                                            \
    const __typeof__(member) sensible = (member); \
    (member) = (value);                           \
    GIVES(HMMJIT_USAGE, call);                    \
    (member) = sensible;                          \
  } while (0)

static hmmjit_models* models = NULL;
static hmmjit_targets* targets = NULL;
static hmmjit_search_options options = {.size = sizeof options};

static void configure(void* context, const hmmjit_problem* problem, const hmmjit_device* device,
                      hmmjit_offer* offer) {
  (void)problem;
  (void)device;
  if (context != NULL && hmmjit_offer_add(offer, context, NULL) != HMMJIT_OK) return;
}

/* ---- structs ------------------------------------------------------------------------------------
 */

static void test_input_structs(void) {
  hmmjit_error* error = NULL;
  hmmjit_results* found = NULL;
  hmmjit_report* report = NULL;
  hmmjit_text* text = NULL;
  hmmjit_callbacks callbacks = {.size = sizeof callbacks};
  hmmjit_report_options how = {.size = sizeof how};
  hmmjit_run_info run = {.size = sizeof run};
  hmmjit_nhmmer_options nhmmer = {.size = sizeof nhmmer};
  hmmjit_cache_settings cache_settings = {.size = sizeof cache_settings};
  hmmjit_cache* cache = NULL;
  const int32_t twice[] = {0, 0};

  /* A search, and what takes the options of one. */
#define SEARCH hmmjit_search(models, targets, &options, &callbacks, &found, &error)
#define CREATE hmmjit_report_create(HMMJIT_REPORT_SCAN_TARGET_TABLE, NULL, &how, &report, &error)
#define HEADER hmmjit_main_report_header(&run, &how, &text, &error)
  OK(SEARCH);
  hmmjit_results_free(found);
  REFUSES_SIZES(hmmjit_search_options, options, SEARCH);
  REFUSES_RESERVED(options, SEARCH);
  REFUSES_SIZES(hmmjit_callbacks, callbacks, SEARCH);
  REFUSES_RESERVED(callbacks, SEARCH);
  how.search = &options;
  how.alignments = 1;
  OK(CREATE);
  hmmjit_report_free(report);
  OK(HEADER);
  hmmjit_text_free(text);
  REFUSES_SIZES(hmmjit_report_options, how, CREATE);
  REFUSES_RESERVED(how, CREATE);
  REFUSES_SIZES(hmmjit_report_options, how, HEADER);
  REFUSES_RESERVED(how, HEADER);
  REFUSES_SIZES(hmmjit_run_info, run, HEADER);
  {
    double* const positive[] = {&options.E,  &options.domE, &options.incE, &options.incdomE,
                                &options.F1, &options.F2,   &options.F3};
    double* const sizes[] = {&options.Z, &options.domZ};
    size_t i;
#define EACH(member, value)             \
  REFUSES_VALUE(member, value, SEARCH); \
  REFUSES_VALUE(member, value, CREATE); \
  REFUSES_VALUE(member, value, HEADER)
    for (i = 0; i < sizeof positive / sizeof positive[0]; ++i) {
      EACH(*positive[i], 0);
      EACH(*positive[i], -1);
      EACH(*positive[i], (double)NAN);
    }
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
      EACH(*sizes[i], -1);
      EACH(*sizes[i], (double)INFINITY);
      EACH(*sizes[i], (double)NAN);
    }
    EACH(options.memory, 1);
    EACH(options.memory, 65535);
    EACH(options.threads, -1);
    EACH(options.threads, 1025);
    EACH(options.verify, -2);
    EACH(options.cutoffs, 5);
    EACH(options.cutoffs, -1);
    EACH(options.device, 3);
    EACH(options.target_count, -2);
    EACH(options.gpu_count, 1);    /* without gpus */
    EACH(options.cutoff_count, 1); /* without a table */
    EACH(options.missing_cutoffs, 3);
    EACH(options.missing_cutoffs, -1);
    EACH(options.reserved_too, 1);
    options.gpus = twice;
    EACH(options.gpu_count, 2);
    options.gpus = NULL;
    EACH(options.size, 0);
    options.reserved = 7;
    GIVES(HMMJIT_USAGE, CREATE);
    GIVES(HMMJIT_USAGE, HEADER);
    options.reserved = 0;
    OK(CREATE); /* all are as they were */
    hmmjit_report_free(report);
  }
  REFUSES_VALUE(how.text_width, 1, CREATE);
  GIVES(HMMJIT_USAGE, hmmjit_report_create(12, NULL, &how, &report, &error));
  GIVES(HMMJIT_USAGE, hmmjit_report_create(-1, NULL, &how, &report, &error));

  OK(hmmjit_nhmmer_options_init(&nhmmer, &error));
#define NHMMER hmmjit_nhmmer(models, targets, &nhmmer, &callbacks, &found, &error)
  REFUSES_SIZES(hmmjit_nhmmer_options, nhmmer, NHMMER);
  REFUSES_VALUE(nhmmer.strands, 3, NHMMER);
  REFUSES_VALUE(nhmmer.block_length, 10, NHMMER);

  cache_settings.mode = HMMJIT_CACHE_OFF;
#define OPEN hmmjit_cache_open(&cache_settings, &cache, &error)
  REFUSES_SIZES(hmmjit_cache_settings, cache_settings, OPEN);
  REFUSES_VALUE(cache_settings.mode, 5, OPEN);
  REFUSES_VALUE(cache_settings.mode, -2, OPEN);
}

static void test_engine_structs(void) {
  hmmjit_error* error = NULL;
  hmmjit_cache_settings cache_settings = {.size = sizeof cache_settings};
  hmmjit_engine_settings settings = {.size = sizeof settings};
  hmmjit_configuration configuration = {.size = sizeof configuration};
  hmmjit_variant variant = {.size = sizeof variant};
  hmmjit_device device = {.size = sizeof device};
  hmmjit_plan_options how = {.size = sizeof how};
  const hmmjit_template template = {
      "own/x.cu",
      "#include \"plan_constants.h\"\nextern \"C\" __global__ void x(int p) {\n"
      "  (void)(p + plan_constants::kThreads);\n}\n"};
  const hmmjit_constant constant = {"kThreads", 64};
  hmmjit_problem problem = {sizeof problem, "misuse", NULL, 0};
  hmmjit_engine* engine = NULL;
  hmmjit_cache* cache = NULL;
  hmmjit_plan* plan = NULL;
  hmmjit_text* text = NULL;
  int64_t value = 0;

  cache_settings.mode = HMMJIT_CACHE_OFF;
  OK(hmmjit_cache_open(&cache_settings, &cache, &error));
  configuration.constants = &constant;
  configuration.constant_count = 1;
  configuration.threads_x = 64;
  configuration.threads_y = configuration.threads_z = 1;
  configuration.registers = 32;
  configuration.items_per_clock_per_sm = 1;
  variant.name = "x";
  variant.family = "misuse";
  variant.template_file = "own/x.cu";
  variant.entry_name = "x";
  variant.context = &configuration;
  variant.configurations = configure;
  settings.templates = &template;
  settings.template_count = 1;
  settings.variants = &variant;
  settings.variant_count = 1;
  settings.cache = cache;
#define ENGINE hmmjit_engine_create(&settings, &engine, &error)
  REFUSES_SIZES(hmmjit_engine_settings, settings, ENGINE);
  REFUSES_SIZES(hmmjit_variant, variant, ENGINE);
  REFUSES_RESERVED(variant, ENGINE);
  REFUSES_VALUE(variant.name, NULL, ENGINE);
  REFUSES_VALUE(variant.name, "../x", ENGINE);
  REFUSES_VALUE(variant.family, NULL, ENGINE);
  REFUSES_VALUE(variant.template_file, NULL, ENGINE);
  REFUSES_VALUE(variant.entry_name, NULL, ENGINE);
  REFUSES_VALUE(variant.configurations, NULL, ENGINE);
  REFUSES_VALUE(variant.compile_option_count, 1, ENGINE);
  REFUSES_VALUE(settings.templates, NULL, ENGINE);
  REFUSES_VALUE(settings.variants, NULL, ENGINE);
  OK(ENGINE);
  hmmjit_cache_free(cache);

#define FIND hmmjit_device_find("H200", &device, &error)
  REFUSES_SIZES(hmmjit_device, device, FIND);
  OK(FIND);
#define PLAN hmmjit_engine_plan(engine, &problem, &device, &how, &plan, &error)
#define STAGE hmmjit_engine_plan_stage(engine, "ssv", 200, &device, &how, &plan, &error)
  OK(PLAN);
  GIVES(HMMJIT_USAGE, hmmjit_plan_constant(plan, "none", &value, &error));
  GIVES(HMMJIT_USAGE, hmmjit_plan_constant(plan, NULL, &value, &error));
  GIVES(HMMJIT_USAGE, hmmjit_plan_constant(plan, "kThreads", NULL, &error));
  GIVES(HMMJIT_USAGE, hmmjit_engine_render(engine, plan, NULL, &error));
  OK(hmmjit_engine_render(engine, plan, &text, &error));
  hmmjit_text_free(text);
  hmmjit_plan_free(plan);
  OK(STAGE);
  hmmjit_plan_free(plan);
  REFUSES_SIZES(hmmjit_problem, problem, PLAN);
  REFUSES_SIZES(hmmjit_device, device, PLAN);
  REFUSES_SIZES(hmmjit_device, device, STAGE);
  REFUSES_SIZES(hmmjit_plan_options, how, PLAN);
  REFUSES_SIZES(hmmjit_plan_options, how, STAGE);
  REFUSES_RESERVED(how, PLAN);
  REFUSES_RESERVED(how, STAGE);
  REFUSES_VALUE(problem.parameter_count, 1, PLAN);
  REFUSES_VALUE(problem.family, NULL, PLAN);
  {
    int32_t* const numbers[] = {&device.major,
                                &device.sm_count,
                                &device.clock_khz,
                                &device.max_threads_per_sm,
                                &device.max_blocks_per_sm,
                                &device.registers_per_sm,
                                &device.max_registers_per_thread};
    int32_t* const sizes[] = {&device.shared_per_sm, &device.shared_per_block,
                              &device.shared_reserved_per_block};
    size_t i;
    for (i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
      REFUSES_VALUE(*numbers[i], 0, PLAN);
      REFUSES_VALUE(*numbers[i], -1, STAGE);
      REFUSES_VALUE(*numbers[i], INT32_MAX, STAGE);
    }
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
      REFUSES_VALUE(*sizes[i], -1, PLAN);
      REFUSES_VALUE(*sizes[i], INT32_MAX, STAGE);
    }
    REFUSES_VALUE(device.memory_bytes, -1, STAGE);
    REFUSES_VALUE(device.l2_bytes, -1, STAGE);
    REFUSES_VALUE(device.memory_bandwidth, (double)NAN, STAGE);
    REFUSES_VALUE(device.memory_bandwidth, (double)INFINITY, PLAN);
  }
  REFUSES_VALUE(how.alphabet_codes, -1, STAGE);
  REFUSES_VALUE(how.alphabet_codes, 1 << 30, STAGE);
  REFUSES_VALUE(how.policy, 2, STAGE);
  {
    const int32_t lengths[] = {0, -1, INT32_MIN, INT32_MAX};
    size_t i;
    for (i = 0; i < sizeof lengths / sizeof lengths[0]; ++i)
      GIVES(HMMJIT_INPUT,
            hmmjit_engine_plan_stage(engine, "ssv", lengths[i], &device, &how, &plan, &error));
    GIVES(HMMJIT_USAGE, hmmjit_engine_plan_stage(engine, NULL, 1, &device, &how, &plan, &error));
  }
  /* What a catalogue entry offers. */
  REFUSES_VALUE(configuration.threads_x, 0, PLAN);
  REFUSES_VALUE(configuration.threads_x, 1025, PLAN);
  REFUSES_VALUE(configuration.threads_y, INT32_MAX, PLAN);
  configuration.threads_x = configuration.threads_y = 1 << 16; /* the product is 0 in 32 bits */
  GIVES(HMMJIT_USAGE, PLAN);
  configuration.threads_x = 64;
  configuration.threads_y = 1;
  REFUSES_VALUE(configuration.dynamic_shared_bytes, -1, PLAN);
  REFUSES_VALUE(configuration.registers, -1, PLAN);
  REFUSES_VALUE(configuration.local_bytes, -1, PLAN);
  REFUSES_VALUE(configuration.items_per_clock_per_sm, (double)NAN, PLAN);
  REFUSES_VALUE(configuration.items_per_clock_per_sm, (double)INFINITY, PLAN);
  configuration.reserved = 7; /* the offer refuses it, and so there is none */
  GIVES(HMMJIT_COMPILE, PLAN);
  configuration.reserved = 0;
  configuration.size = 12;
  GIVES(HMMJIT_COMPILE, PLAN);
  configuration.size = sizeof configuration;
  OK(PLAN);
  hmmjit_engine_free(engine); /* before what was made of it */
  CHECK(strcmp(hmmjit_plan_variant(plan), "x") == 0);
  hmmjit_plan_free(plan);
}

static void test_output_structs(void) {
  hmmjit_error* error = NULL;
  hmmjit_results* found = NULL;
  const hmmjit_result* result;
  hmmjit_search_options init = {.size = sizeof init};
  hmmjit_model_info model = {.size = sizeof model};
  hmmjit_search_statistics statistics = {.size = sizeof statistics};
  hmmjit_result_info info = {.size = sizeof info};
  hmmjit_hit hit = {.size = sizeof hit};
  hmmjit_domain domain = {.size = sizeof domain};
  hmmjit_cache_settings cache_settings = {.size = sizeof cache_settings};
  hmmjit_cache_statistics cache_statistics = {.size = sizeof cache_statistics};
  hmmjit_cache* cache = NULL;
  uint64_t count = 0;

  REFUSES_SIZES(hmmjit_search_options, init, hmmjit_search_options_init(&init, &error));
  REFUSES_SIZES(hmmjit_model_info, model, hmmjit_models_get(models, 0, &model, &error));
  GIVES(HMMJIT_USAGE, hmmjit_models_get(models, (size_t)-1, &model, &error));
  OK(hmmjit_search(models, targets, &options, NULL, &found, &error));
  REFUSES_SIZES(hmmjit_search_statistics, statistics,
                hmmjit_results_statistics(found, &statistics, &error));
  CHECK(hmmjit_results_get(found, (size_t)-1) == NULL);
  result = hmmjit_results_get(found, 0);
  REFUSES_SIZES(hmmjit_result_info, info, hmmjit_result_get_info(result, &info, &error));
  OK(hmmjit_result_get_info(result, &info, &error));
  CHECK(info.hits > 0 && info.domains > 0);
  REFUSES_SIZES(hmmjit_hit, hit, hmmjit_result_get_hits(result, 0, 1, &hit, &error));
  REFUSES_SIZES(hmmjit_domain, domain, hmmjit_result_get_domains(result, 0, 1, &domain, &error));
  GIVES(HMMJIT_USAGE, hmmjit_result_get_hits(result, (size_t)-1, 2, &hit, &error));
  GIVES(HMMJIT_USAGE, hmmjit_result_get_hits(result, 1, (size_t)-1, &hit, &error));
  GIVES(HMMJIT_USAGE, hmmjit_result_get_hits(result, 0, 1, NULL, &error));
  GIVES(HMMJIT_USAGE, hmmjit_result_get_domains(result, info.domains, 1, &domain, &error));
  hmmjit_results_free(found);
  cache_settings.mode = HMMJIT_CACHE_OFF;
  OK(hmmjit_cache_open(&cache_settings, &cache, &error));
  REFUSES_SIZES(hmmjit_cache_statistics, cache_statistics,
                hmmjit_cache_get_statistics(cache, &cache_statistics, &error));
  GIVES(HMMJIT_USAGE, hmmjit_cache_export(cache, NULL, &count, &error));
  GIVES(HMMJIT_USAGE, hmmjit_cache_import(cache, NULL, &count, &error));
  hmmjit_cache_free(cache);
}

/* ---- callbacks ----------------------------------------------------------------------------------
 */

struct search {
  int calls, stop_at;
  hmmjit_models* models;
  hmmjit_targets* targets;
};

static int32_t stop(void* context, const hmmjit_result* result) {
  struct search* search = context;
  (void)result;
  return ++search->calls == search->stop_at ? -1 : 0;
}
static int32_t stop_progress(void* context, const hmmjit_progress* progress) {
  struct search* search = context;
  (void)progress;
  return ++search->calls >= search->stop_at ? INT32_MIN : 0;
}
static int32_t stop_models(void* context, const hmmjit_models* one) {
  (void)context;
  (void)one;
  return 1;
}
/* The handles of the search itself. */
static int32_t free_inputs(void* context, const hmmjit_result* result) {
  struct search* search = context;
  (void)result;
  hmmjit_models_free(search->models);
  hmmjit_targets_free(search->targets);
  search->models = NULL;
  search->targets = NULL;
  ++search->calls;
  return 0;
}
static int32_t free_iteration(void* context, const hmmjit_progress* progress) {
  hmmjit_iteration** iteration = context;
  (void)progress;
  hmmjit_iteration_free(*iteration);
  *iteration = NULL;
  return 0;
}
static int32_t search_within(void* context, const hmmjit_result* result) {
  struct search* search = context;
  hmmjit_results* found = NULL;
  (void)result;
  if (search->calls++ == 0) {
    CHECK(hmmjit_search(models, targets, &options, NULL, &found, NULL) == HMMJIT_OK);
    hmmjit_results_free(found);
  }
  return 0;
}

static void test_callbacks(const char* model_path, const char* target_path) {
  hmmjit_error* error = NULL;
  hmmjit_results* found = NULL;
  hmmjit_cancellation* cancellation = NULL;
  hmmjit_callbacks callbacks = {.size = sizeof callbacks};
  struct search search = {0, 1, NULL, NULL};
  hmmjit_targets* query = NULL;
  hmmjit_iteration* iteration = NULL;
  hmmjit_rounds* rounds = NULL;
  hmmjit_iteration_options how = {.size = sizeof how};
  hmmjit_search_options with_table = options;
  const hmmjit_cutoff cutoff = {"model", 1, 1};
  callbacks.context = &search;
  for (search.stop_at = 1; search.stop_at <= 3; ++search.stop_at) {
    search.calls = 0;
    callbacks.result = stop;
    GIVES(HMMJIT_INTERRUPTED, hmmjit_search(models, targets, &options, &callbacks, &found, &error));
    CHECK(search.calls == search.stop_at);
  }
  callbacks.result = NULL;
  callbacks.progress = stop_progress;
  callbacks.interval_ms = 1;
  search.calls = 0;
  search.stop_at = 1;
  GIVES(HMMJIT_INTERRUPTED, hmmjit_search(models, targets, &options, &callbacks, &found, &error));
  callbacks.progress = NULL;
  OK(hmmjit_models_for_each(models, stop_models, NULL, &error));

  callbacks.result = search_within;
  search.calls = 0;
  OK(hmmjit_search(models, targets, &options, &callbacks, &found, &error));
  CHECK(search.calls > 1);
  hmmjit_results_free(found);

  callbacks.result = free_inputs;
  search.calls = 0;
  OK(hmmjit_models_load(model_path, &search.models, &error));
  OK(hmmjit_targets_load(target_path, HMMJIT_AMINO, NULL, &search.targets, &error));
  OK(hmmjit_search(search.models, search.targets, &options, &callbacks, &found, &error));
  CHECK(search.calls > 1 && search.models == NULL);
  hmmjit_results_free(found);

  callbacks.result = NULL;
  callbacks.progress = free_iteration;
  callbacks.context = &iteration;
  OK(hmmjit_targets_create(HMMJIT_AMINO, &query, &error));
  OK(hmmjit_targets_add(query, "q", NULL, NULL, "MKVLAAGGHKLMWYFIDE", 18, &error));
  OK(hmmjit_iteration_options_init(&how, &error));
  with_table.cutoff_table = &cutoff; /* without effect: cutoffs is 0 */
  with_table.cutoff_count = 1;
  how.search = &with_table;
  OK(hmmjit_iteration_create(query, targets, &how, &iteration, &error));
  OK(hmmjit_iteration_next(iteration, &callbacks, &rounds, &error));
  CHECK(iteration == NULL && hmmjit_rounds_count(rounds) == 1);
  hmmjit_rounds_free(rounds);
  hmmjit_targets_free(query);
  callbacks.progress = NULL;

  OK(hmmjit_cancellation_create(&cancellation, &error));
  hmmjit_cancellation_cancel(cancellation);
  callbacks.cancellation = cancellation;
  GIVES(HMMJIT_INTERRUPTED, hmmjit_search(models, targets, &options, &callbacks, &found, &error));
  hmmjit_cancellation_free(cancellation);
}

/* ---- early close --------------------------------------------------------------------------------
 */

static void test_early_close(void) {
  hmmjit_error* error = NULL;
  hmmjit_results* found = NULL;
  hmmjit_result* copy = NULL;
  hmmjit_report* report = NULL;
  hmmjit_result_info info = {.size = sizeof info};
  const char* path = "misuse_test.report";
  OK(hmmjit_search(models, targets, &options, NULL, &found, &error));
  OK(hmmjit_result_copy(hmmjit_results_get(found, 0), &copy, &error));
  OK(hmmjit_report_create(HMMJIT_REPORT_MAIN, path, NULL, &report, &error));
  OK(hmmjit_report_add(report, hmmjit_results_get(found, 0), &error));
  hmmjit_results_free(found);
  OK(hmmjit_report_add(report, copy, &error));
  OK(hmmjit_result_get_info(copy, &info, &error));
  hmmjit_result_free(copy);
  hmmjit_report_free(report); /* not complete: no file */
  CHECK(access(path, F_OK) != 0);
}

/* ---- threads and processes ----------------------------------------------------------------------
 */

static void* search_in_thread(void* line) {
  hmmjit_error* error = NULL;
  hmmjit_results* found = NULL;
  hmmjit_search_options wrong = options;
  int i;
  for (i = 0; i < 5; ++i) {
    if (hmmjit_search(models, targets, &options, NULL, &found, &error) != HMMJIT_OK) return line;
    hmmjit_results_free(found);
    wrong.Z = -1;
    if (hmmjit_search(models, targets, &wrong, NULL, &found, &error) != HMMJIT_USAGE) return line;
    hmmjit_error_free(error);
    error = NULL;
    if (hmmjit_models_load("/nowhere", NULL, NULL) == HMMJIT_OK) return line;
  }
  return NULL;
}

static void test_threads(void) {
  pthread_t threads[8];
  size_t i;
  for (i = 0; i < 8; ++i)
    CHECK(pthread_create(&threads[i], NULL, search_in_thread, &failures) == 0);
  for (i = 0; i < 8; ++i) {
    void* failed = NULL;
    CHECK(pthread_join(threads[i], &failed) == 0 && failed == NULL);
  }
}

/* A child has none of the parent's threads, but can search. */
static void test_fork(void) {
  int status = 0;
  pid_t child;
  fflush(NULL);
  child = fork();
  if (child == 0) {
    alarm(120); /* a hang is a failure */
    search_in_thread(NULL);
    failures = 0;
    test_early_close();
    _exit(search_in_thread(&status) == NULL && failures == 0 ? 0 : 1);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- files that change --------------------------------------------------------------------------
 */

struct file {
  const char* path;
  int calls;
};

static int32_t cut_short(void* context, const hmmjit_result* result) {
  struct file* file = context;
  (void)result;
  if (file->calls++ == 0) CHECK(truncate(file->path, 1024) == 0);
  return 0;
}

/* A mapped file that is cut short ends its process by SIGBUS. */
static void test_database_cut_short(void) {
  const char* path = "misuse_test.hjdb";
  hmmjit_error* error = NULL;
  hmmjit_targets *many = NULL, *file = NULL;
  hmmjit_models* all = NULL;
  hmmjit_results* found = NULL;
  hmmjit_search_options small = options;
  hmmjit_callbacks callbacks = {.size = sizeof callbacks};
  struct file cut = {path, 0};
  hmmjit_database_info info = {.size = sizeof info};
  const hmmjit_targets* inputs[1];
  size_t i, m, size = 0;
  char* bytes;
  OK(hmmjit_targets_create(HMMJIT_AMINO, &many, &error));
  OK(hmmjit_models_create(&all, &error));
  for (i = 0; i < 5; ++i) {
    OK(hmmjit_targets_append(many, targets, &error));
    for (m = 0; m < hmmjit_models_count(models); ++m) OK(hmmjit_models_add(all, models, m, &error));
  }
  inputs[0] = many;
  OK(hmmjit_database_build(inputs, 1, HMMJIT_AMINO, path, &error));
  bytes = read_file(path, &size);
  OK(hmmjit_targets_from_file(path, NULL, &file, &error));
  callbacks.context = &cut;
  callbacks.result = cut_short;
  small.memory = 65536; /* read again for a few models at a time */
  small.threads = 1;
  GIVES(HMMJIT_INPUT, hmmjit_search(all, file, &small, &callbacks, &found, &error));
  CHECK(cut.calls > 0);
  /* Beyond the header: everything else reads there. */
  GIVES(HMMJIT_INPUT, hmmjit_database_verify(path, &error));
  GIVES(HMMJIT_INPUT, hmmjit_database_get_info(path, &info, NULL, &error));
  GIVES(HMMJIT_INPUT, hmmjit_search(all, file, &small, NULL, &found, &error));
  {
    FILE* again = fopen(path, "wb");
    CHECK(fwrite(bytes, 1, size, again) == size);
    fclose(again);
  }
  OK(hmmjit_search(models, file, &options, NULL, &found, &error));
  hmmjit_results_free(found);
  free(bytes);
  hmmjit_targets_free(many);
  hmmjit_targets_free(file);
  hmmjit_models_free(all);
  remove(path);
}

int main(int argc, char** argv) {
  hmmjit_error* error = NULL;
  if (argc != 3) {
    fprintf(stderr, "usage: %s MODELS TARGETS\n", argv[0]);
    return 2;
  }
  OK(hmmjit_models_load(argv[1], &models, &error));
  OK(hmmjit_targets_load(argv[2], HMMJIT_AMINO, NULL, &targets, &error));
  OK(hmmjit_search_options_init(&options, &error));
  options.device = HMMJIT_DEVICE_CPU;
  options.threads = 2;
  test_input_structs();
  test_engine_structs();
  test_output_structs();
  test_callbacks(argv[1], argv[2]);
  test_early_close();
  test_threads();
  test_fork();
  test_database_cut_short();
  hmmjit_models_free(models);
  hmmjit_targets_free(targets);
  if (failures == 0) puts("every misuse of the C interface gave its status");
  return failures == 0 ? 0 : 1;
}
