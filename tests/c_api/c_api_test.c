/* The C interface from C: every kind of object once, structs of other versions, kernels of a host.
 * misuse_test.c has callbacks and refusals; tests/python compares results with the program's.
 * usage: c_api_test MODELS TARGETS (files) FOLDER (for temporary files) */
#include <math.h>

#include "checks-inl.h"

static char* report_of(int32_t kind, const hmmjit_results* results) {
  hmmjit_error* error = NULL;
  hmmjit_report* report = NULL;
  hmmjit_text* text = NULL;
  char* out = NULL;
  size_t i;
  OK(hmmjit_report_create(kind, NULL, NULL, &report, &error));
  for (i = 0; i < hmmjit_results_count(results); ++i)
    OK(hmmjit_report_add(report, hmmjit_results_get(results, i), &error));
  OK(hmmjit_report_complete(report, NULL, &error));
  OK(hmmjit_report_take_text(report, &text, &error));
  out = strdup(hmmjit_text_data(text));
  CHECK(strlen(out) == hmmjit_text_size(text));
  hmmjit_text_free(text);
  hmmjit_report_free(report);
  return out;
}

static void test_search(const char* model_path, const char* target_path) {
  hmmjit_error* error = NULL;
  hmmjit_models *models = NULL, *file_models = NULL, *picked = NULL;
  hmmjit_targets *targets = NULL, *file_targets = NULL, *own = NULL;
  hmmjit_results *results = NULL, *file_results = NULL;
  hmmjit_search_options options = {.size = sizeof options};
  hmmjit_search_statistics statistics = {.size = sizeof statistics};
  size_t model_size = 0, target_size = 0, i;
  char* model_bytes = read_file(model_path, &model_size);
  char* target_bytes = read_file(target_path, &target_size);
  char *one, *other;

  OK(hmmjit_models_from_memory(model_bytes, model_size, NULL, &models, &error));
  OK(hmmjit_targets_from_memory(target_bytes, target_size, HMMJIT_AMINO, NULL, NULL, &targets,
                                &error));
  free(model_bytes); /* the library has its own copy */
  free(target_bytes);
  OK(hmmjit_models_from_file(model_path, &file_models, &error));
  OK(hmmjit_targets_from_file(target_path, "fasta", &file_targets, &error));
  CHECK(hmmjit_models_count(models) > 0 && hmmjit_models_count(file_models) == 0);
  CHECK(hmmjit_targets_count(targets) > 0 && hmmjit_targets_residues(targets) > 0);

  OK(hmmjit_search_options_init(&options, &error));
  CHECK(options.E == 10.0 && isnan(options.T) && options.seed == 42);
  CHECK(options.first_target == NULL && options.target_count == -1);
  options.threads = 2;
  options.device = HMMJIT_DEVICE_CPU;
  OK(hmmjit_search(models, targets, &options, NULL, &results, &error));
  OK(hmmjit_search(file_models, file_targets, &options, NULL, &file_results, &error));
  hmmjit_results* scanned = NULL;
  hmmjit_result_info sequence = {.size = sizeof sequence};
  OK(hmmjit_scan(models, targets, &options, NULL, &scanned, &error));
  OK(hmmjit_result_get_info(hmmjit_results_get(scanned, 0), &sequence, &error));
  CHECK(sequence.scan == 1 && sequence.counts.targets == hmmjit_models_count(models));
  hmmjit_results_free(scanned);
  CHECK(hmmjit_results_count(results) == hmmjit_models_count(models));
  CHECK(hmmjit_results_get(results, 9999) == NULL);
  one = report_of(HMMJIT_REPORT_DOMAIN_TABLE, results);
  other = report_of(HMMJIT_REPORT_DOMAIN_TABLE, file_results);
  CHECK(strcmp(one, other) == 0);
  CHECK(strlen(one) > 1000);
  free(one);
  free(other);
  OK(hmmjit_results_statistics(results, &statistics, &error));
  CHECK(statistics.targets == hmmjit_targets_count(targets));
  CHECK(statistics.hits_reported > 0 && statistics.threads == 2);
  CHECK(strstr(statistics.json, "\"libhmmjit\"") != NULL);

  /* Hits and domains, as arrays of structs. */
  for (i = 0; i < hmmjit_results_count(results); ++i) {
    const hmmjit_result* result = hmmjit_results_get(results, i);
    hmmjit_result_info info = {.size = sizeof info};
    hmmjit_hit* hits;
    hmmjit_domain* domains;
    size_t h, d, reported = 0;
    OK(hmmjit_result_get_info(result, &info, &error));
    CHECK(info.model_index == i && info.has_alignments == 1);
    hits = calloc(info.hits + 1, sizeof *hits);
    domains = calloc(info.domains + 1, sizeof *domains);
    hits[0].size = sizeof *hits;
    domains[0].size = sizeof *domains;
    OK(hmmjit_result_get_hits(result, 0, info.hits, hits, &error));
    OK(hmmjit_result_get_domains(result, 0, info.domains, domains, &error));
    for (h = 0; h < info.hits; ++h) {
      CHECK(hits[h].size == sizeof *hits && strlen(hits[h].name) > 0);
      reported += (size_t)hits[h].reported;
      for (d = hits[h].first_domain; d < hits[h].first_domain + hits[h].domains; ++d)
        CHECK(domains[d].hit == h && strlen(domains[d].model) == strlen(domains[d].posterior));
    }
    CHECK(reported == info.reported);
    if (info.domains > 1) { /* from the middle; and with the struct of an older caller */
      hmmjit_domain last = {.size = sizeof last};
      hmmjit_hit old;
      memset(&old, 0x55, sizeof old);
      OK(hmmjit_result_get_domains(result, info.domains - 1, 1, &last, &error));
      CHECK(last.hit == domains[info.domains - 1].hit &&
            last.score == domains[info.domains - 1].score);
      old.size = offsetof(hmmjit_hit, score);
      OK(hmmjit_result_get_hits(result, 0, 1, &old, &error));
      CHECK(old.e_value == hits[0].e_value && old.size == offsetof(hmmjit_hit, score));
      CHECK(old.length == 0x55555555); /* not written */
    }
    free(hits);
    free(domains);
  }

  /* One model, own targets; text of the caller's in a report. */
  OK(hmmjit_models_create(&picked, &error));
  OK(hmmjit_models_add(picked, models, 0, &error));
  OK(hmmjit_targets_create(HMMJIT_AMINO, &own, &error));
  {
    hmmjit_model_info model = {.size = sizeof model};
    hmmjit_results* found = NULL;
    hmmjit_hit hit = {.size = sizeof hit};
    hmmjit_report* report = NULL;
    hmmjit_text* text = NULL;
    hmmjit_run_info run = {.size = sizeof run};
    hmmjit_report_options how = {.size = sizeof how};
    OK(hmmjit_models_get(picked, 0, &model, &error));
    OK(hmmjit_targets_add(own, "consensus", NULL, "of the model", model.consensus,
                          strlen(model.consensus), &error));
    OK(hmmjit_search(picked, own, &options, NULL, &found, &error));
    OK(hmmjit_result_get_hits(hmmjit_results_get(found, 0), 0, 1, &hit, &error));
    CHECK(strcmp(hit.name, "consensus") == 0 && strcmp(hit.description, "of the model") == 0);
    CHECK(hit.reported == 1 && hit.index == 0);
    run.query_file = "queries.hmm";
    OK(hmmjit_main_report_header(&run, &how, &text, &error));
    CHECK(strstr(hmmjit_text_data(text), "queries.hmm\n") != NULL);
    OK(hmmjit_report_create(HMMJIT_REPORT_MAIN, NULL, &how, &report, &error));
    OK(hmmjit_report_add_text(report, hmmjit_text_data(text), &error));
    hmmjit_text_free(text);
    OK(hmmjit_report_add(report, hmmjit_results_get(found, 0), &error));
    OK(hmmjit_report_complete(report, &run, &error));
    GIVES(HMMJIT_USAGE, hmmjit_report_add_text(report, "lost", &error));
    OK(hmmjit_report_take_text(report, &text, &error));
    CHECK(strncmp(hmmjit_text_data(text), "# libhmmjit", 11) == 0);
    hmmjit_text_free(text);
    hmmjit_report_free(report);
    how.page_title = "a page";
    how.page_targets = 3;
    OK(hmmjit_report_create(HMMJIT_REPORT_HTML_PAGE, NULL, &how, &report, &error));
    OK(hmmjit_report_add(report, hmmjit_results_get(found, 0), &error));
    OK(hmmjit_report_complete(report, &run, &error));
    OK(hmmjit_report_take_text(report, &text, &error));
    CHECK(strstr(hmmjit_text_data(text), "<title>a page") != NULL);
    hmmjit_text_free(text);
    hmmjit_report_free(report);
    hmmjit_results_free(found);
  }

  GIVES(HMMJIT_USAGE, hmmjit_search(NULL, targets, &options, NULL, &results, &error));
  GIVES(HMMJIT_USAGE, hmmjit_search(models, targets, &options, NULL, NULL, &error));
  GIVES(HMMJIT_USAGE, hmmjit_models_get(models, 9999, NULL, &error));
  CHECK(hmmjit_models_load("/nowhere/x.hmm", &models, NULL) == HMMJIT_INPUT);
  GIVES(HMMJIT_USAGE, hmmjit_targets_create(77, &own, &error));
  options.first_target = "no such target";
  GIVES(HMMJIT_INPUT, hmmjit_search(picked, targets, &options, NULL, &results, &error));
  options.first_target = NULL;
  /* Options of a later version. */
  {
    struct {
      hmmjit_search_options options;
      int32_t later;
    } newer;
    hmmjit_results* found = NULL;
    memset(&newer, 0, sizeof newer);
    newer.options = options;
    newer.options.size = sizeof newer;
    OK(hmmjit_search(picked, own, &newer.options, NULL, &found, &error));
    hmmjit_results_free(found);
    newer.later = 1;
    GIVES(HMMJIT_USAGE, hmmjit_search(picked, own, &newer.options, NULL, &found, &error));
  }
  hmmjit_results_free(results);
  hmmjit_results_free(file_results);
  hmmjit_models_free(models);
  hmmjit_models_free(file_models);
  hmmjit_models_free(picked);
  hmmjit_targets_free(targets);
  hmmjit_targets_free(file_targets);
  hmmjit_targets_free(own);
}

static const char* const kTemplate =
    "#include \"plan_constants.h\"\n"
    "struct Parameters { float* values; int count; };\n"
    "extern \"C\" __global__ void twice(Parameters p) {\n"
    "  const int i = blockIdx.x * plan_constants::kThreads + threadIdx.x;\n"
    "  if (i < p.count) p.values[i] *= 2;\n"
    "}\n";

static void configure(void* context, const hmmjit_problem* problem, const hmmjit_device* device,
                      hmmjit_offer* offer) {
  int threads;
  (void)context;
  if (problem->parameters[0].value == 0) {
    hmmjit_offer_reject(offer, "nothing to double");
    return;
  }
  for (threads = 64; threads <= 128; threads *= 2) {
    const hmmjit_constant constant = {"kThreads", threads};
    hmmjit_configuration c = {.size = sizeof c};
    c.constants = &constant;
    c.constant_count = 1;
    c.threads_x = threads;
    c.threads_y = c.threads_z = 1;
    c.registers = 32;
    c.items_per_clock_per_sm = threads + device->major;
    c.binding_resource = "memory bandwidth";
    hmmjit_offer_add(offer, &c, NULL);
  }
}

static void test_engine(void) {
  hmmjit_error* error = NULL;
  hmmjit_cache* cache = NULL;
  hmmjit_engine* engine = NULL;
  hmmjit_plan* plan = NULL;
  hmmjit_text* text = NULL;
  hmmjit_device device = {.size = sizeof device};
  hmmjit_constant size = {"size", 1000};
  hmmjit_problem problem = {sizeof problem, "doubling", &size, 1};
  const hmmjit_template template = {"own/twice.cu", kTemplate};
  hmmjit_variant variant = {.size = sizeof variant};
  hmmjit_engine_settings settings = {.size = sizeof settings};
  hmmjit_cache_settings memory_only = {.size = sizeof memory_only};
  int64_t threads = 0;
  int32_t major = 0, minor = 0, count = -1;

  memory_only.mode = HMMJIT_CACHE_OFF;
  OK(hmmjit_cache_open(&memory_only, &cache, &error));
  variant.name = "twice_plain";
  variant.family = "doubling";
  variant.template_file = "own/twice.cu";
  variant.entry_name = "twice";
  variant.configurations = configure;
  settings.templates = &template;
  settings.template_count = 1;
  settings.variants = &variant;
  settings.variant_count = 1;
  settings.cache = cache;
  OK(hmmjit_engine_create(&settings, &engine, &error));
  hmmjit_cache_free(cache); /* the engine has its share */
  OK(hmmjit_device_find("H200", &device, &error));
  CHECK(device.major == 9 && device.ordinal == -1 && device.sm_count > 100);
  OK(hmmjit_engine_plan(engine, &problem, &device, NULL, &plan, &error));
  OK(hmmjit_plan_constant(plan, "kThreads", &threads, &error));
  CHECK(threads == 128);
  CHECK(strcmp(hmmjit_plan_variant(plan), "twice_plain") == 0);
  CHECK(strstr(hmmjit_plan_text(plan), "doubling, size 1000") != NULL);
  CHECK(strstr(hmmjit_plan_json(plan), "\"stage\":\"host\"") != NULL);
  OK(hmmjit_engine_render(engine, plan, &text, &error));
  CHECK(strstr(hmmjit_text_data(text), "enum : int { kThreads = 128 };") != NULL);
  hmmjit_text_free(text);
  OK(hmmjit_compiler_version(&major, &minor, NULL, &error));
  if (major > 0) {
    hmmjit_image* image = NULL;
    hmmjit_image_info info = {.size = sizeof info};
    OK(hmmjit_engine_compile(engine, plan, &image, &error));
    OK(hmmjit_image_get_info(image, &info, &error));
    CHECK(strcmp(info.architecture, "sm_90") == 0 && info.byte_count > 100);
    CHECK(info.registers > 0 && info.spill_bytes == 0 && info.parameter_bytes == 16);
    hmmjit_image_free(image);
  } else {
    fprintf(stderr, "SKIPPED: no run-time compiler on this machine\n");
  }
  hmmjit_plan_free(plan);
  size.value = 0;
  GIVES(HMMJIT_COMPILE, hmmjit_engine_plan(engine, &problem, &device, NULL, &plan, &error));
  OK(hmmjit_engine_plan_stage(engine, "ssv", 200, &device, NULL, &plan, &error));
  CHECK(strstr(hmmjit_plan_json(plan), "\"policy\":\"default\"") != NULL);
  hmmjit_plan_free(plan);
  {
    hmmjit_plan_options how = {.size = sizeof how};
    how.policy = HMMJIT_POLICY_CUDAMPFPP;
    OK(hmmjit_engine_plan_stage(engine, "ssv", 200, &device, &how, &plan, &error));
    CHECK(strstr(hmmjit_plan_json(plan), "\"policy\":\"cudampfpp\"") != NULL);
    hmmjit_plan_free(plan);
    how.policy = 77;
    GIVES(HMMJIT_USAGE, hmmjit_engine_plan_stage(engine, "ssv", 200, &device, &how, &plan, &error));
    how.policy = HMMJIT_POLICY_DEFAULT;
    how.variant = "no such variant";
    GIVES(HMMJIT_USAGE, hmmjit_engine_plan_stage(engine, "ssv", 200, &device, &how, &plan, &error));
  }
  GIVES(HMMJIT_USAGE, hmmjit_engine_plan_stage(engine, "none", 200, &device, NULL, &plan, &error));
  {
    const char* const stages[] = {"ssv",  "msv",    "bias",     "viterbi", "forward",
                                  "gate", "parser", "ensemble", "envelope"};
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; ++i) {
      OK(hmmjit_engine_plan_stage(engine, stages[i], 200, &device, NULL, &plan, &error));
      CHECK(strstr(hmmjit_plan_json(plan), stages[i]) != NULL);
      hmmjit_plan_free(plan);
    }
  }
  OK(hmmjit_device_count(&count, &text, &error));
  CHECK(strlen(hmmjit_text_data(text)) > 0 || count > 0);
  hmmjit_text_free(text);
  if (count == 0) {
    hmmjit_gpu* gpu = NULL;
    GIVES(HMMJIT_NO_DEVICE, hmmjit_gpu_open(0, &gpu, &error));
    GIVES(HMMJIT_NO_DEVICE, hmmjit_device_get(0, &device, &error));
    GIVES(HMMJIT_USAGE, hmmjit_gpu_synchronize(NULL, &error));
    GIVES(HMMJIT_USAGE, hmmjit_stream_finished(NULL, &count, &error));
    GIVES(HMMJIT_USAGE, hmmjit_event_finished(NULL, &count, &error));
  }
  hmmjit_engine_free(engine);
}

static void test_parts(const char* model_path, const char* target_path, const char* folder) {
  hmmjit_error* error = NULL;
  hmmjit_models* models = NULL;
  hmmjit_targets* targets = NULL;
  hmmjit_results *merged = NULL, *whole = NULL;
  hmmjit_text* text = NULL;
  char database[512], names[3][512], *texts[2];
  const char* files[3] = {names[0], names[1], names[2]};
  const hmmjit_targets* inputs[1];
  hmmjit_search_options options = {.size = sizeof options}, kept = {.size = sizeof kept};
  hmmjit_part_info info = {.size = sizeof info}, joined = {.size = sizeof joined};
  hmmjit_database_info about = {.size = sizeof about};
  uint32_t part;
  OK(hmmjit_search_options_init(&options, &error));
  options.device = HMMJIT_DEVICE_CPU;
  options.E = 0.5;
  OK(hmmjit_models_load(model_path, &models, &error));
  OK(hmmjit_targets_from_file(target_path, NULL, &targets, &error));
  inputs[0] = targets;
  snprintf(database, sizeof database, "%s/c_api_test.hjdb", folder);
  GIVES(HMMJIT_USAGE, hmmjit_database_build(inputs, 0, HMMJIT_AMINO, database, &error));
  OK(hmmjit_database_build(inputs, 1, HMMJIT_AMINO, database, &error));
  OK(hmmjit_database_get_info(database, &about, &text, &error));
  CHECK(about.targets == 300 && strncmp(hmmjit_text_data(text), "program hmmjit ", 15) == 0);
  hmmjit_text_free(text);
  OK(hmmjit_database_verify(database, &error));
  GIVES(HMMJIT_INPUT, hmmjit_database_verify(target_path, &error));
  hmmjit_targets_free(targets);
  GIVES(HMMJIT_USAGE, hmmjit_targets_load(database, HMMJIT_AMINO, "fasta", &targets, &error));
  OK(hmmjit_targets_from_file(database, NULL, &targets, &error));
  for (part = 1; part <= 3; ++part) {
    memset(&info, 0xee, sizeof info); /* an output: only its size is read */
    info.size = sizeof info;
    snprintf(names[part - 1], sizeof names[0], "%s/c_api_test.part%u", folder, (unsigned)part);
    OK(hmmjit_search_part(models, database, part, 3, names[part - 1], &options, NULL, &info,
                          &error));
    CHECK(info.part == part && info.parts == 3 && info.last_model == 5 && info.model_parts == 1);
  }
  OK(hmmjit_merge_parts(files, 3, NULL, &merged, &error));
  OK(hmmjit_results_get_options(merged, &kept, &error));
  CHECK(kept.E == 0.5 && kept.domE == 10 && isnan(kept.T));
  memset(&kept, 0, sizeof kept);
  kept.size = sizeof kept;
  OK(hmmjit_part_get_options(names[1], &kept, &error));
  CHECK(kept.E == 0.5);
  OK(hmmjit_search(models, targets, &options, NULL, &whole, &error));
  texts[0] = report_of(HMMJIT_REPORT_A3M, merged);
  texts[1] = report_of(HMMJIT_REPORT_A3M, whole);
  CHECK(strlen(texts[0]) > 100 && strcmp(texts[0], texts[1]) == 0);
  free(texts[0]);
  free(texts[1]);
  hmmjit_results_free(merged);
  hmmjit_results_free(whole);
  OK(hmmjit_parts_missing(files + 1, 1, &text, &error));
  CHECK(strcmp(hmmjit_text_data(text), "1,3") == 0);
  hmmjit_text_free(text);
  memset(&joined, 0xee, sizeof joined);
  joined.size = 0;
  remove(names[0]);
  GIVES(HMMJIT_USAGE, hmmjit_join_parts(files + 1, 2, names[0], &joined, &error));
  CHECK(fopen(names[0], "r") == NULL);
  joined.size = sizeof joined;
  OK(hmmjit_join_parts(files + 1, 2, names[0], &joined, &error));
  OK(hmmjit_part_get_info(names[0], &info, &text, &error));
  CHECK(info.part == 2 && info.last_part == 3 && strcmp(info.content, joined.content) == 0);
  CHECK(strstr(hmmjit_text_data(text), ": ") != NULL);
  hmmjit_text_free(text);
  OK(hmmjit_part_verify(names[0], &error));
  GIVES(HMMJIT_INPUT, hmmjit_part_verify(database, &error));
  OK(hmmjit_search_model_part(models, database, 1, 1, 2, 3, names[0], &options, NULL, &info,
                              &error));
  CHECK(info.model_part == 2 && info.model_parts == 3 && info.first_model > 0);
  GIVES(HMMJIT_USAGE, hmmjit_search_model_part(models, database, 1, 1, 4, 3, names[0], &options,
                                               NULL, NULL, &error));
  hmmjit_targets_free(targets);
  hmmjit_models_free(models);
  remove(database);
  for (part = 0; part < 3; ++part) remove(names[part]);
}

static int32_t on_target(void* context, const hmmjit_target* target) {
  hmmjit_targets* copies = context;
  if (hmmjit_targets_add(copies, target->name, target->accession, target->description,
                         target->residues, target->length, NULL) != HMMJIT_OK)
    return 1;
  return target->index == 4;
}

static void test_building(const char* target_path) {
  hmmjit_error* error = NULL;
  hmmjit_targets *targets = NULL, *queries = NULL;
  hmmjit_models *built = NULL, *again = NULL, *one = NULL;
  hmmjit_model_info info = {.size = sizeof info};
  hmmjit_build_options options = {.size = sizeof options};
  hmmjit_iteration_options how = {.size = sizeof how};
  hmmjit_search_options search = {.size = sizeof search};
  hmmjit_iteration* iteration = NULL;
  hmmjit_rounds* rounds = NULL;
  hmmjit_report* report = NULL;
  hmmjit_result *copy = NULL, *damaged = NULL;
  hmmjit_text *text = NULL, *binary = NULL;
  static const char alignment[] =
      "# STOCKHOLM 1.0\n#=GF ID family\na MKVLAAGGHKLMWWC\nb MKVLAAGCHKLMWYC\nc "
      "MRVL-AGCHKLMWYC\n//\n";
  int number = 0;
  OK(hmmjit_targets_from_file(target_path, NULL, &targets, &error));
  OK(hmmjit_targets_create(HMMJIT_AMINO, &queries, &error));
  OK(hmmjit_targets_for_each(targets, HMMJIT_AMINO, 2, on_target, queries, &error));
  CHECK(hmmjit_targets_count(queries) == 3);
  OK(hmmjit_build_options_init(&options, &error));
  OK(hmmjit_build_models(queries, &options, &built, &error));
  CHECK(hmmjit_models_count(built) == 3);
  {
    hmmjit_cancellation* cancellation = NULL;
    hmmjit_models* none = NULL;
    OK(hmmjit_cancellation_create(&cancellation, &error));
    hmmjit_cancellation_cancel(cancellation);
    options.cancellation = cancellation;
    CHECK(hmmjit_build_models(queries, &options, &none, NULL) == HMMJIT_INTERRUPTED);
    CHECK(hmmjit_build_from_alignment_memory(alignment, sizeof alignment - 1, NULL, NULL, &options,
                                             &none, NULL) == HMMJIT_INTERRUPTED);
    CHECK(none == NULL);
    options.cancellation = NULL;
    hmmjit_cancellation_free(cancellation);
  }
  OK(hmmjit_models_write(built, 1, 1, &binary, &error));
  OK(hmmjit_models_from_memory(hmmjit_text_data(binary), hmmjit_text_size(binary), NULL, &again,
                               &error));
  OK(hmmjit_models_create(&one, &error));
  OK(hmmjit_models_add_with_query(one, again, 0, "q", "A1", "about", &error));
  {
    hmmjit_model_info other = {.size = sizeof other};
    hmmjit_models* changed = NULL;
    OK(hmmjit_models_create(&changed, &error));
    OK(hmmjit_models_get(again, 0, &other, &error));
    CHECK(other.match != NULL && other.letters == 20 && other.msv_lambda > 0);
    other.name = "new";
    other.gathering = 30;
    other.gathering_domain = 20.5;
    {
      struct {
        hmmjit_model_info info;
        void* later[400];
      } newer;
      memset(&newer, 0, sizeof newer);
      newer.info = other;
      newer.info.size = sizeof newer;
      OK(hmmjit_models_add_changed(changed, again, 0, &newer.info, &error));
    }
    OK(hmmjit_models_get(changed, 0, &other, &error));
    CHECK(strcmp(other.name, "new") == 0 && other.gathering_domain == 20.5 && isnan(other.noise));
    /* A caller whose struct ends before the cutoffs keeps them. */
    other.size = offsetof(hmmjit_model_info, gathering);
    other.name = "newer";
    OK(hmmjit_models_add_changed(changed, changed, 0, &other, &error));
    other.size = sizeof other;
    OK(hmmjit_models_get(changed, 1, &other, &error));
    CHECK(strcmp(other.name, "newer") == 0 && other.gathering == 30 && isnan(other.noise));
    hmmjit_models_free(changed);
  }
  OK(hmmjit_models_get(one, 0, &info, &error));
  CHECK(strcmp(info.query_name, "q") == 0 && strcmp(info.query_accession, "A1") == 0);
  hmmjit_text_free(binary);
  hmmjit_models_free(one);
  hmmjit_models_free(again);
  hmmjit_models_free(built);
  OK(hmmjit_build_from_alignment_memory(alignment, sizeof alignment - 1, NULL, NULL, &options,
                                        &built, &error));
  hmmjit_models_free(built);
  GIVES(HMMJIT_INPUT, hmmjit_build_from_alignments("/nowhere", NULL, NULL, &built, &error));

  OK(hmmjit_iteration_options_init(&how, &error));
  CHECK(how.rounds == 5 && how.text_width == 120);
  OK(hmmjit_search_options_init(&search, &error));
  search.device = HMMJIT_DEVICE_CPU;
  search.incE = search.incdomE = 0.001;
  how.search = &search;
  how.build = &options;
  how.rounds = 3;
  how.a3m = 1;
  OK(hmmjit_iteration_create(queries, targets, &how, &iteration, &error));
  CHECK(hmmjit_iteration_queries(iteration) == 3 && !hmmjit_iteration_done(iteration));
  while (!hmmjit_iteration_done(iteration)) {
    size_t i;
    ++number;
    OK(hmmjit_iteration_next(iteration, NULL, &rounds, &error));
    for (i = 0; i < hmmjit_rounds_count(rounds); ++i) {
      const hmmjit_round* round = hmmjit_rounds_get(rounds, i);
      hmmjit_round_info r = {.size = sizeof r};
      hmmjit_models* model = NULL;
      OK(hmmjit_round_get_info(round, &r, &error));
      CHECK(r.number == number && r.included >= 2 && (r.last || number < 3));
      CHECK(strncmp(hmmjit_round_alignment(round), "# STOCKHOLM 1.0", 15) == 0);
      OK(hmmjit_round_model(round, &model, &error));
      CHECK(hmmjit_models_count(model) == 1);
      hmmjit_models_free(model);
      if (copy == NULL) OK(hmmjit_result_copy(hmmjit_round_result(round), &copy, &error));
    }
    hmmjit_rounds_free(rounds);
  }
  CHECK(number > 1);
  OK(hmmjit_iteration_next(iteration, NULL, &rounds, &error));
  CHECK(hmmjit_rounds_count(rounds) == 0 && hmmjit_rounds_get(rounds, 0) == NULL);
  hmmjit_rounds_free(rounds);
  OK(hmmjit_report_create(HMMJIT_REPORT_MAIN, NULL, NULL, &report, &error));
  OK(hmmjit_report_add_iteration(report, iteration, 2, &error));
  GIVES(HMMJIT_USAGE, hmmjit_report_add_iteration(report, iteration, 3, &error));
  OK(hmmjit_report_complete(report, NULL, &error));
  OK(hmmjit_report_take_text(report, &text, &error));
  CHECK(strstr(hmmjit_text_data(text), "@@ New targets included:") != NULL);
  hmmjit_text_free(text);
  hmmjit_report_free(report);
  OK(hmmjit_report_create(HMMJIT_REPORT_PFAM_TABLE, NULL, NULL, &report, &error));
  GIVES(HMMJIT_USAGE, hmmjit_report_add_iteration(report, iteration, 0, &error));
  hmmjit_report_free(report);
  hmmjit_iteration_free(iteration);

  /* Serialisation preserves a result; damaged bytes are refused. */
  OK(hmmjit_result_write(copy, &text, &error));
  OK(hmmjit_result_read(hmmjit_text_data(text), hmmjit_text_size(text), &damaged, &error));
  OK(hmmjit_result_write(damaged, &binary, &error));
  CHECK(hmmjit_text_size(binary) == hmmjit_text_size(text) &&
        memcmp(hmmjit_text_data(binary), hmmjit_text_data(text), hmmjit_text_size(text)) == 0);
  hmmjit_result_free(damaged);
  {
    const hmmjit_result* twice[2] = {copy, copy};
    hmmjit_result* merged = NULL;
    hmmjit_result_info single = {.size = sizeof single}, both = {.size = sizeof both};
    OK(hmmjit_result_merge(twice, 2, &search, &merged, &error));
    OK(hmmjit_result_get_info(copy, &single, &error));
    OK(hmmjit_result_get_info(merged, &both, &error));
    CHECK(both.counts.targets == 2 * single.counts.targets && both.Z == 2 * single.Z);
    CHECK(both.included == 2 * single.included && both.included > 0);
    hmmjit_result_free(merged);
    search.cutoffs = HMMJIT_CUT_GA;
    GIVES(HMMJIT_USAGE, hmmjit_result_merge(twice, 2, &search, &merged, &error));
  }
  GIVES(HMMJIT_INPUT, hmmjit_result_read("nonsense", 8, &damaged, &error));
  for (size_t size = 0; size < hmmjit_text_size(text); size += 7)
    GIVES(HMMJIT_INPUT, hmmjit_result_read(hmmjit_text_data(text), size, &damaged, &error));
  hmmjit_text_free(text);
  hmmjit_text_free(binary);
  hmmjit_result_free(copy);
  hmmjit_targets_free(queries);
  hmmjit_targets_free(targets);
}

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: %s MODELS TARGETS FOLDER\n", argv[0]);
    return 2;
  }
  CHECK(strchr(hmmjit_version(), '.') != NULL);
  CHECK(hmmjit_version_number() == HMMJIT_HEADER_VERSION);
  CHECK(strcmp(hmmjit_status_name(HMMJIT_INPUT), "input") == 0);
  test_search(argv[1], argv[2]);
  test_parts(argv[1], argv[2], argv[3]);
  test_building(argv[2]);
  test_engine();
  if (failures == 0) puts("all C interface checks passed");
  return failures == 0 ? 0 : 1;
}
