/* libhmmjit for C and for bindings of other languages.
 *
 * Conventions
 *   Status    Functions that can fail return HMMJIT_OK or a status code, the exit statuses of the
 *             hmmjit program. Their last argument receives an error object, to be freed; it may be
 *             NULL. Outputs are written on success only. No exception, exit, signal or output leaves
 *             the library, and there is no global state. Files that are cut short while they are read,
 *             target databases included, are HMMJIT_INPUT.
 *   Handles   hmmjit_xxx pointers are opaque; each is freed by hmmjit_xxx_free, which takes NULL.
 *             Handles refer to what they were made from by themselves: any order of freeing is good.
 *   Structs   Every struct begins with its size, set by the caller to sizeof: the library then
 *             knows which members the caller was compiled with. Inputs: fields a caller does not
 *             know have their defaults. Outputs: no more than `size` bytes are written. Structs only
 *             ever grow at the end. A caller newer than the library that runs may have members it
 *             does not know: as inputs they must be zero bytes (HMMJIT_USAGE otherwise, so that
 *             nothing asked for is silently left out), as outputs they are set to zero bytes.
 *             Reserved members must be zero. A reserved member that is not, and a size that no
 *             struct has (over 4096 bytes, no multiple of sizeof(size_t)), are HMMJIT_USAGE.
 *   Texts     UTF-8, NUL-terminated; those in structs belong to the handle they were asked of and
 *             live as long as it does. Input texts are copied. NULL and "" mean none.
 *   Threads   Functions that take const handles may be called from several threads at once;
 *             others, one thread at a time per handle. Searches may run in any number at once; each
 *             takes by default all cores and up to half of the free memory, so a caller that runs N
 *             of them sets `threads` and `memory` to an N-th.
 *   Callbacks run with the floating-point mode of the thread that called the library. They must
 *             return: no longjmp, no exception.
 *   Symbols   are versioned (HMMJIT_0.1, ...); a symbol once published keeps its meaning.
 *
 * Units: bits for scores, seconds for times, bytes for sizes, 1-based inclusive coordinates.
 */
#ifndef HMMJIT_H
#define HMMJIT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HMMJIT_C_API __attribute__((visibility("default")))
#else
#define HMMJIT_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status, errors, version ------------------------------------------------------------------- */

enum {
  HMMJIT_OK = 0,
  HMMJIT_INTERNAL = 1,      /* a bug in hmmjit */
  HMMJIT_USAGE = 2,         /* an argument that makes no sense */
  HMMJIT_INPUT = 3,         /* a missing, malformed or unsuitable model or sequence */
  HMMJIT_NO_DEVICE = 4,     /* a GPU was demanded and none can be used */
  HMMJIT_RESOURCES = 5,     /* out of memory, threads, device memory */
  HMMJIT_COMPILE = 6,       /* a kernel could not be rendered, compiled or loaded */
  HMMJIT_OUTPUT = 7,        /* a file could not be written */
  HMMJIT_INTERRUPTED = 130  /* cancelled by the caller */
};

typedef struct hmmjit_error hmmjit_error;

/* "ok", "internal", "usage", "input", ...: static storage; "unknown" for other codes. */
HMMJIT_C_API const char *hmmjit_status_name(int32_t status);
HMMJIT_C_API int32_t hmmjit_error_status(const hmmjit_error *error);
/* All parts on one line. */
HMMJIT_C_API const char *hmmjit_error_text(const hmmjit_error *error);
/* The parts: what, where (may be ""), what to do about it (may be ""). */
HMMJIT_C_API const char *hmmjit_error_message(const hmmjit_error *error);
HMMJIT_C_API const char *hmmjit_error_where(const hmmjit_error *error);
HMMJIT_C_API const char *hmmjit_error_remedy(const hmmjit_error *error);
HMMJIT_C_API void hmmjit_error_free(hmmjit_error *error);

/* Major x 10000 + minor x 100 + patch: of this header, and of the library that runs, which may be
 * newer. Before 1.0 both must have the same minor version. */
#define HMMJIT_HEADER_VERSION 100
HMMJIT_C_API int32_t hmmjit_version_number(void);
/* "0.1.0" of the library that runs. */
HMMJIT_C_API const char *hmmjit_version(void);

/* A text made for the caller. */
typedef struct hmmjit_text hmmjit_text;
HMMJIT_C_API const char *hmmjit_text_data(const hmmjit_text *text);
HMMJIT_C_API size_t hmmjit_text_size(const hmmjit_text *text);
HMMJIT_C_API void hmmjit_text_free(hmmjit_text *text);

/* ---- models ------------------------------------------------------------------------------------ */

enum { HMMJIT_AMINO = 0, HMMJIT_DNA = 1, HMMJIT_RNA = 2 };

typedef struct hmmjit_models hmmjit_models;

typedef struct hmmjit_model_info {
  size_t size;
  const char *name, *accession, *description, *consensus;
  int32_t length; /* match states */
  int32_t alphabet;
  /* Cutoffs per sequence and per domain; NaN where the model has none. */
  double gathering, gathering_domain, trusted, trusted_domain, noise, noise_domain;
  /* The sequence that stands for the model in reports: of hmmjit_build_models the one it was built
   * from; "" where there is none. */
  const char *query_name, *query_accession, *query_description;
} hmmjit_model_info;

/* Empty; from a file that each search reads; read now from a file; parsed from memory (`name` stands
 * for the path in messages). Formats: HMMER3 text and binary, HMMER2 text, plain, gzip or zstd. */
HMMJIT_C_API int32_t hmmjit_models_create(hmmjit_models **out, hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_models_from_file(const char *path, hmmjit_models **out,
                                             hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_models_load(const char *path, hmmjit_models **out,
                                        hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_models_from_memory(const void *bytes, size_t size, const char *name,
                                               hmmjit_models **out, hmmjit_error **error);
/* Appends model `index` of `from`. Not while a search runs on `models`. */
HMMJIT_C_API int32_t hmmjit_models_add(hmmjit_models *models, const hmmjit_models *from,
                                       size_t index, hmmjit_error **error);
/* The same, with a sequence that stands for the model in reports; query_name NULL: none. */
HMMJIT_C_API int32_t hmmjit_models_add_with_query(hmmjit_models *models, const hmmjit_models *from,
                                                  size_t index, const char *query_name,
                                                  const char *query_accession,
                                                  const char *query_description,
                                                  hmmjit_error **error);
/* Model `index` as a profile file: text in format HMMER3/f, where probabilities have five digits,
 * or binary (.h3m), where every parameter is kept bit for bit. */
HMMJIT_C_API int32_t hmmjit_models_write(const hmmjit_models *models, size_t index, int32_t binary,
                                         hmmjit_text **out, hmmjit_error **error);
/* Models in memory; 0 for from_file. */
HMMJIT_C_API size_t hmmjit_models_count(const hmmjit_models *models);
HMMJIT_C_API int32_t hmmjit_models_get(const hmmjit_models *models, size_t index,
                                       hmmjit_model_info *info, hmmjit_error **error);
/* Calls `visit` for each model, reading the file where there is one, until it returns other than 0.
 * `one` holds this model alone (number 0 of hmmjit_models_get and hmmjit_models_add) and lives until
 * `visit` returns. */
HMMJIT_C_API int32_t hmmjit_models_for_each(const hmmjit_models *models,
                                            int32_t (*visit)(void *context,
                                                             const hmmjit_models *one),
                                            void *context, hmmjit_error **error);
HMMJIT_C_API void hmmjit_models_free(hmmjit_models *models);

/* ---- targets ----------------------------------------------------------------------------------- */

typedef struct hmmjit_targets hmmjit_targets;

/* As for models. `format`: NULL, or a name of hmmsearch's --tformat. Formats: FASTA, EMBL/UniProt,
 * GenBank and alignments, plain, gzip or zstd; and target databases (.hjdb), recognised by content,
 * for which no format is named: from_file reads them as it searches, load and from_memory copy their targets. */
HMMJIT_C_API int32_t hmmjit_targets_create(int32_t alphabet, hmmjit_targets **out,
                                           hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_targets_from_file(const char *path, const char *format,
                                              hmmjit_targets **out, hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_targets_load(const char *path, int32_t alphabet, const char *format,
                                         hmmjit_targets **out, hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_targets_from_memory(const void *bytes, size_t size, int32_t alphabet,
                                                const char *format, const char *name,
                                                hmmjit_targets **out, hmmjit_error **error);
/* `residues`: `length` letters of the alphabet, either case; white space is dropped. Blanks and
 * control characters in name or accession, and control characters but tabs in the description, are
 * HMMJIT_USAGE. Not while a search runs on `targets`. */
HMMJIT_C_API int32_t hmmjit_targets_add(hmmjit_targets *targets, const char *name,
                                        const char *accession, const char *description,
                                        const char *residues, size_t length, hmmjit_error **error);
/* Appends all targets of `from`, reading its file where it has one. Not while a search runs on
 * `targets`. */
HMMJIT_C_API int32_t hmmjit_targets_append(hmmjit_targets *targets, const hmmjit_targets *from,
                                           hmmjit_error **error);
/* In memory; 0 for from_file. */
HMMJIT_C_API uint64_t hmmjit_targets_count(const hmmjit_targets *targets);
HMMJIT_C_API uint64_t hmmjit_targets_residues(const hmmjit_targets *targets);
/* One target. Its texts belong to the caller of `visit` and live until it returns; `residues` are
 * `length` letters, upper case. */
typedef struct hmmjit_target {
  size_t size;
  const char *name, *accession, *description, *residues;
  uint64_t index, length;
} hmmjit_target;
/* Calls `visit` for each target from number `first` on, in order, until it returns other than 0;
 * reads the file where there is one. */
HMMJIT_C_API int32_t hmmjit_targets_for_each(const hmmjit_targets *targets, int32_t alphabet,
                                             uint64_t first,
                                             int32_t (*visit)(void *context,
                                                              const hmmjit_target *target),
                                             void *context, hmmjit_error **error);
HMMJIT_C_API void hmmjit_targets_free(hmmjit_targets *targets);

/* ---- target databases -------------------------------------------------------------------------- */

typedef struct hmmjit_database_info {
  size_t size;
  int32_t format_version, alphabet;
  uint64_t targets, residues;
  uint32_t shortest, median, longest, reserved; /* residues of a target */
  uint64_t file_bytes;
  uint64_t identity; /* of the targets and their order, whatever their source */
} hmmjit_database_info;

/* Writes the targets of `count` inputs, in order, into the file `path`, which appears when it is
 * complete. */
HMMJIT_C_API int32_t hmmjit_database_build(const hmmjit_targets *const *inputs, size_t count,
                                           int32_t alphabet, const char *path,
                                           hmmjit_error **error);
/* From the header, at once. `about` (may be NULL) receives lines "program ..." and "source ...". */
HMMJIT_C_API int32_t hmmjit_database_get_info(const char *path, hmmjit_database_info *info,
                                              hmmjit_text **about, hmmjit_error **error);
/* Checks every byte: HMMJIT_INPUT at the first damage. */
HMMJIT_C_API int32_t hmmjit_database_verify(const char *path, hmmjit_error **error);

/* ---- kernel cache ------------------------------------------------------------------------------ */

enum {
  HMMJIT_CACHE_OFF = 0,
  HMMJIT_CACHE_READ_ONLY = 1,
  HMMJIT_CACHE_READ_WRITE = 2,
  HMMJIT_CACHE_REFRESH = 3,
  HMMJIT_CACHE_STRICT = 4 /* read-only, and nothing may be compiled */
};

typedef struct hmmjit_cache hmmjit_cache;

typedef struct hmmjit_cache_settings {
  size_t size;
  const char *directory, *system_directory; /* NULL: the environment's; "": none */
  int32_t mode;                             /* -1: the environment's */
  int32_t allow_group;                      /* accept a folder that its group may write */
  uint64_t max_bytes, max_memory_bytes;     /* 0: the environment's */
} hmmjit_cache_settings;

typedef struct hmmjit_cache_statistics {
  size_t size;
  uint64_t memory_hits, user_hits, system_hits, misses, published, publish_failures, bad_entries,
      refused_entries; /* of this handle */
  uint64_t entries, disk_bytes; /* of the user's folder */
} hmmjit_cache_statistics;

/* `settings` NULL: all from the environment (HMMJIT_CACHE_*). */
HMMJIT_C_API int32_t hmmjit_cache_open(const hmmjit_cache_settings *settings, hmmjit_cache **out,
                                       hmmjit_error **error);
HMMJIT_C_API const char *hmmjit_cache_directory(const hmmjit_cache *cache);
HMMJIT_C_API int32_t hmmjit_cache_get_statistics(const hmmjit_cache *cache,
                                                 hmmjit_cache_statistics *statistics,
                                                 hmmjit_error **error);
/* Each may tell how many entries it concerned (`count` may be NULL). max_bytes 0: the settings'. */
HMMJIT_C_API int32_t hmmjit_cache_trim(const hmmjit_cache *cache, uint64_t max_bytes,
                                       uint64_t *count, hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_cache_clear(const hmmjit_cache *cache, uint64_t *count,
                                        hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_cache_export(const hmmjit_cache *cache, const char *path,
                                         uint64_t *count, hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_cache_import(const hmmjit_cache *cache, const char *path,
                                         uint64_t *count, hmmjit_error **error);
HMMJIT_C_API void hmmjit_cache_free(hmmjit_cache *cache);

/* ---- search ------------------------------------------------------------------------------------ */

enum { HMMJIT_CUT_NONE = 0, HMMJIT_CUT_GA = 1, HMMJIT_CUT_NC = 2, HMMJIT_CUT_TC = 3 };
enum { HMMJIT_DEVICE_AUTO = 0, HMMJIT_DEVICE_CPU = 1, HMMJIT_DEVICE_GPU = 2 };

typedef struct hmmjit_search_options {
  size_t size;
  /* Thresholds: by E-value, or by score where that is not NaN. */
  double E, domE, incE, incdomE;
  double T, domT, incT, incdomT;
  int32_t cutoffs;
  int32_t max_sensitivity; /* no filters */
  double Z, domZ;          /* finite; 0: counted */
  double F1, F2, F3;       /* P-values of the filters */
  int32_t bias_filter, null2;
  uint32_t seed; /* 0: an arbitrary one */
  int32_t keep_alignments;
  int32_t threads; /* 0: all cores granted */
  int32_t device;
  uint64_t memory; /* bytes, 65,536 at least; 0: half of what is free */
  uint64_t vram;   /* of each GPU; 0: nine tenths of what is free */
  const int32_t *gpus;
  size_t gpu_count; /* 0: the first GPU */
  int32_t verify;   /* targets per model whose GPU result is computed again on the CPU; -1: as many as
                     * take one hundredth of the core-seconds */
  int32_t reserved;
  const hmmjit_cache *cache; /* NULL: the environment's */
  const char *first_target;  /* begin at the target of this name; NULL: the first */
  int64_t target_count;      /* as many at most; -1: all */
} hmmjit_search_options;

/* hmmsearch's defaults; `size` must be set. Every struct of options begins with this call: a member
 * that is zero means zero. */
HMMJIT_C_API int32_t hmmjit_search_options_init(hmmjit_search_options *options,
                                                hmmjit_error **error);

typedef struct hmmjit_progress {
  size_t size;
  uint64_t models_started, models_done;
  uint64_t targets, residues; /* read so far */
  uint64_t target_bytes_read, target_bytes_total; /* total 0: not known */
  uint64_t cells, cells_queued; /* model positions x residues: filtered; of all models started */
  int32_t targets_complete, reserved;
} hmmjit_progress;

typedef struct hmmjit_result hmmjit_result;
typedef struct hmmjit_cancellation hmmjit_cancellation;

/* Members may be NULL. A callback returns 0 to go on, anything else to cancel the search. They run on
 * threads of the search. */
typedef struct hmmjit_callbacks {
  size_t size;
  void *context;
  /* Each result in model order, one at a time; lives until the callback returns (see
   * hmmjit_result_copy). Results given to it are not collected. */
  int32_t (*result)(void *context, const hmmjit_result *result);
  int32_t (*progress)(void *context, const hmmjit_progress *progress);
  uint32_t interval_ms; /* between calls of progress; 0: 250 */
  uint32_t reserved;
  const hmmjit_cancellation *cancellation;
  /* What did not go as it should and did not stop the search: a GPU given up, a cache folder that
   * cannot be used. One at a time; lives until the callback returns. */
  void (*warning)(void *context, const hmmjit_error *warning);
} hmmjit_callbacks;

HMMJIT_C_API int32_t hmmjit_cancellation_create(hmmjit_cancellation **out, hmmjit_error **error);
/* From any thread, or a signal handler. */
HMMJIT_C_API void hmmjit_cancellation_cancel(const hmmjit_cancellation *cancellation);
HMMJIT_C_API void hmmjit_cancellation_free(hmmjit_cancellation *cancellation);

typedef struct hmmjit_results hmmjit_results;

/* `options` and `callbacks` may be NULL. Returns when all is done. */
HMMJIT_C_API int32_t hmmjit_search(const hmmjit_models *models, const hmmjit_targets *targets,
                                   const hmmjit_search_options *options,
                                   const hmmjit_callbacks *callbacks, hmmjit_results **out,
                                   hmmjit_error **error);

typedef struct hmmjit_filter_counts {
  uint64_t targets, residues, msv, bias, viterbi, forward;
} hmmjit_filter_counts;

/* Stage seconds are processor time summed over threads. */
typedef struct hmmjit_search_statistics {
  size_t size;
  const char *backend; /* what filtered: "cpu/AVX2", ... */
  const char *device;  /* "ready", "failed: why", ... of the GPU, or why none was used */
  int32_t threads, reserved;
  uint64_t models, targets, residues, passes, hits_reported, domains_reported;
  uint64_t device_cells, device_launches;
  double wall_seconds, read_seconds, setup_seconds, msv_seconds, bias_seconds, viterbi_seconds,
      scoring_seconds;
  hmmjit_filter_counts counts; /* summed over models */
  int32_t streamed, spooled;   /* targets beyond the memory bound; copied to a temporary file */
  double ssv_seconds, report_seconds;
  uint64_t verified;            /* pairs of model and target whose GPU result was checked */
  uint64_t peak_resident_bytes; /* of the process so far */
  /* Of the GPUs, all together; 0 where none was used. */
  double device_busy_seconds;   /* with at least one kernel running */
  double device_active_seconds; /* from ready to the last result */
  uint64_t device_peak_bytes, device_upload_bytes;
  uint64_t kernels;          /* different ones that were launched */
  uint64_t kernels_compiled; /* made by this search */
  uint64_t kernels_loaded;   /* taken from the kernel cache */
  double compile_seconds;    /* summed over threads */
  const char *json;          /* all that was measured: the text of hmmjit search --stats */
} hmmjit_search_statistics;

HMMJIT_C_API size_t hmmjit_results_count(const hmmjit_results *results);
/* Of model `index`, in input order; lives as long as `results`. NULL beyond the end. */
HMMJIT_C_API const hmmjit_result *hmmjit_results_get(const hmmjit_results *results, size_t index);
HMMJIT_C_API int32_t hmmjit_results_statistics(const hmmjit_results *results,
                                               hmmjit_search_statistics *statistics,
                                               hmmjit_error **error);
/* The options that the results depend on, as reports need them; what concerns the machine (threads,
 * memory, devices, cache) has its default. Of merged parts: those of their search. */
HMMJIT_C_API int32_t hmmjit_results_get_options(const hmmjit_results *results,
                                                hmmjit_search_options *options,
                                                hmmjit_error **error);
HMMJIT_C_API void hmmjit_results_free(hmmjit_results *results);

/* ---- results of one model ---------------------------------------------------------------------- */

typedef struct hmmjit_result_info {
  size_t size;
  size_t model_index;
  const char *model_name, *model_accession, *model_description;
  int32_t model_length;
  int32_t has_alignments; /* the search kept them */
  size_t hits; /* candidates, in hmmsearch's order; of these, */
  size_t reported, included;
  size_t domains; /* of all candidates together */
  double Z, domZ, seconds;
  hmmjit_filter_counts counts;
} hmmjit_result_info;

typedef struct hmmjit_hit {
  size_t size;
  const char *name, *accession, *description;
  uint64_t index; /* position in the input, from 0 */
  double e_value, score, bias, expected_domains;
  int32_t length, reported, included;
  int32_t regions, clustered, overlaps, envelopes;
  int32_t reserved;
  size_t best_domain;
  size_t first_domain, domains; /* its domains among all of the result */
} hmmjit_hit;

typedef struct hmmjit_domain {
  size_t size;
  size_t hit; /* index of its hit */
  int32_t envelope_from, envelope_to, alignment_from, alignment_to, model_from, model_to;
  int32_t reported, included;
  double score, bias, conditional_e_value, independent_e_value, accuracy;
  /* Alignment, one column per character; "" when not kept or absent. */
  const char *model, *match, *sequence, *posterior, *reference, *structure;
} hmmjit_domain;

HMMJIT_C_API int32_t hmmjit_result_get_info(const hmmjit_result *result, hmmjit_result_info *info,
                                            hmmjit_error **error);
/* Fills `count` structs from number `first` on; all have the size of the first one's `size`. */
HMMJIT_C_API int32_t hmmjit_result_get_hits(const hmmjit_result *result, size_t first, size_t count,
                                            hmmjit_hit *hits, hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_result_get_domains(const hmmjit_result *result, size_t first,
                                               size_t count, hmmjit_domain *domains,
                                               hmmjit_error **error);
/* A result of the caller's own, which shares its contents with the original. */
HMMJIT_C_API int32_t hmmjit_result_copy(const hmmjit_result *result, hmmjit_result **out,
                                        hmmjit_error **error);
/* All of a result as bytes, for other processes of the same version, and a result of such bytes
 * (HMMJIT_INPUT for others). */
HMMJIT_C_API int32_t hmmjit_result_write(const hmmjit_result *result, hmmjit_text **out,
                                         hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_result_read(const void *bytes, size_t size, hmmjit_result **out,
                                        hmmjit_error **error);
/* Results of one model against several sets of targets as one: what a search of all sets, one after
 * the other, gives. `options`: those of the searches, without cutoffs of models; NULL: the defaults. */
HMMJIT_C_API int32_t hmmjit_result_merge(const hmmjit_result *const *results, size_t count,
                                         const hmmjit_search_options *options, hmmjit_result **out,
                                         hmmjit_error **error);
HMMJIT_C_API void hmmjit_result_free(hmmjit_result *result);

/* ---- reports ----------------------------------------------------------------------------------- */

enum {
  HMMJIT_REPORT_MAIN = 0,
  HMMJIT_REPORT_TARGET_TABLE = 1,
  HMMJIT_REPORT_DOMAIN_TABLE = 2,
  HMMJIT_REPORT_PFAM_TABLE = 3,
  HMMJIT_REPORT_ALIGNMENT = 4, /* Stockholm; needs results with alignments */
  HMMJIT_REPORT_TSV = 5,
  HMMJIT_REPORT_JSON = 6,
  HMMJIT_REPORT_A3M = 7, /* needs results with alignments */
  /* As hmmscan: tables by target, of a search whose Z was set, to the number of models. */
  HMMJIT_REPORT_SCAN_TARGET_TABLE = 8,
  HMMJIT_REPORT_SCAN_DOMAIN_TABLE = 9,
  HMMJIT_REPORT_HTML_PAGE = 10
};

typedef struct hmmjit_report hmmjit_report;

typedef struct hmmjit_report_options {
  size_t size;
  int32_t prefer_accession, alignments; /* defaults 0, 1 */
  int32_t text_width;                   /* default 120, the least; 0: unlimited */
  int32_t reserved;
  /* The search's options: filters, repeated by the main report, and thresholds, for tables by
   * target. NULL: defaults. */
  const hmmjit_search_options *search;
  const char *page_title; /* of the HTML page; NULL: the program */
  uint64_t page_targets;  /* shown on it, those of the best E-values; 0: all */
} hmmjit_report_options;

/* What the comment lines of tables say of the run. */
typedef struct hmmjit_run_info {
  size_t size;
  const char *program, *version, *query_file, *target_file, *settings, *folder, *date;
} hmmjit_run_info;

/* `path` NULL: kept in memory; else a file that appears under its name once complete.
 * `options` may be NULL. */
HMMJIT_C_API int32_t hmmjit_report_create(int32_t kind, const char *path,
                                          const hmmjit_report_options *options,
                                          hmmjit_report **out, hmmjit_error **error);
/* The lines that open the main report: what was searched, and settings that are not defaults. */
HMMJIT_C_API int32_t hmmjit_main_report_header(const hmmjit_run_info *run,
                                               const hmmjit_report_options *options,
                                               hmmjit_text **out, hmmjit_error **error);
/* Text at this place of the output, such as that header. */
HMMJIT_C_API int32_t hmmjit_report_add_text(hmmjit_report *report, const char *text,
                                            hmmjit_error **error);
/* HMMJIT_USAGE when the kind cannot be made of this result, and after complete. */
HMMJIT_C_API int32_t hmmjit_report_add(hmmjit_report *report, const hmmjit_result *result,
                                       hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_report_complete(hmmjit_report *report, const hmmjit_run_info *run,
                                            hmmjit_error **error);
/* What was written since the last call, of a report in memory. */
HMMJIT_C_API int32_t hmmjit_report_take_text(hmmjit_report *report, hmmjit_text **out,
                                             hmmjit_error **error);
HMMJIT_C_API void hmmjit_report_free(hmmjit_report *report);

/* ---- parts of a search over many machines ------------------------------------------------------- */

/* What a part file says of itself. */
typedef struct hmmjit_part_info {
  size_t size;
  /* Shares of the targets: `part` to `last_part` of `parts`, from 1. */
  uint32_t part, last_part, parts, reserved;
  uint64_t first_target, last_target; /* indices in the database, the last excluded */
  uint64_t first_model, last_model;   /* the same of the models */
  uint64_t targets_reported, domains;
  char content[64]; /* digest: equal for any threads, memory, device and order of merging */
  uint32_t model_part, last_model_part, model_parts, reserved_too; /* shares of the models */
} hmmjit_part_info;

/* Searches part number `part` (from 1) of `parts` of a database made by hmmjit_database_build, and
 * writes it to the file `output`, which appears when it is complete. `callbacks->result` is not
 * called. `options`, `callbacks` and `info` may be NULL. HMMJIT_USAGE for a part that is none, a
 * seed of 0 and options that restrict the targets; HMMJIT_INPUT for what is no database. */
HMMJIT_C_API int32_t hmmjit_search_part(const hmmjit_models *models, const char *database,
                                        uint32_t part, uint32_t parts, const char *output,
                                        const hmmjit_search_options *options,
                                        const hmmjit_callbacks *callbacks, hmmjit_part_info *info,
                                        hmmjit_error **error);
/* As hmmjit_search_part with share `model_part` (from 1) of `model_parts` of the models, of about
 * equal positions. `models` are all models of the search; those of a file that is not loaded need
 * its index (`hmmjit part index`), without which it is HMMJIT_INPUT. */
HMMJIT_C_API int32_t hmmjit_search_model_part(const hmmjit_models *models, const char *database,
                                              uint32_t part, uint32_t parts, uint32_t model_part,
                                              uint32_t model_parts, const char *output,
                                              const hmmjit_search_options *options,
                                              const hmmjit_callbacks *callbacks,
                                              hmmjit_part_info *info, hmmjit_error **error);
/* The results of the whole search from the files of all its parts, in any order. Reports of them
 * have the bytes of a search without parts; hmmjit_results_get_options has the options they need.
 * With `callbacks->result` one model is held at a time; no other callback is called. HMMJIT_INPUT
 * where a part is missing, damaged or of another search. */
HMMJIT_C_API int32_t hmmjit_merge_parts(const char *const *files, size_t count,
                                        const hmmjit_callbacks *callbacks, hmmjit_results **out,
                                        hmmjit_error **error);
/* Writes parts of neighbouring targets as one part, with the content that a search of it has.
 * `info` may be NULL. */
HMMJIT_C_API int32_t hmmjit_join_parts(const char *const *files, size_t count, const char *output,
                                       hmmjit_part_info *info, hmmjit_error **error);
/* Describes a part. `settings` (may be NULL) receives lines "name: value" with all that must agree
 * between the parts of a search. */
HMMJIT_C_API int32_t hmmjit_part_get_info(const char *file, hmmjit_part_info *info,
                                          hmmjit_text **settings, hmmjit_error **error);
/* The options of its search that results depend on, as of hmmjit_results_get_options. */
HMMJIT_C_API int32_t hmmjit_part_get_options(const char *file, hmmjit_search_options *options,
                                             hmmjit_error **error);
/* Checks every byte of a part: HMMJIT_INPUT at the first damage. */
HMMJIT_C_API int32_t hmmjit_part_verify(const char *file, hmmjit_error **error);
/* Parts that none of these files holds, as a list of numbers from 1, "3,17,40-42"; empty when all
 * are there. */
HMMJIT_C_API int32_t hmmjit_parts_missing(const char *const *files, size_t count, hmmjit_text **out,
                                          hmmjit_error **error);

/* ---- models from sequences and alignments ------------------------------------------------------- */

enum { HMMJIT_COLUMNS_OCCUPIED = 0, HMMJIT_COLUMNS_REFERENCE = 1 };
enum {
  HMMJIT_WEIGHTS_POSITION = 0, /* Henikoff & Henikoff 1994 */
  HMMJIT_WEIGHTS_TREE = 1,     /* Gerstein, Sonnhammer & Chothia 1994 */
  HMMJIT_WEIGHTS_CLUSTERS = 2, /* Henikoff & Henikoff 1992 */
  HMMJIT_WEIGHTS_NONE = 3,
  HMMJIT_WEIGHTS_GIVEN = 4
};
enum {
  HMMJIT_EFFECTIVE_ENTROPY = 0,
  HMMJIT_EFFECTIVE_ENTROPY_POWER = 1,
  HMMJIT_EFFECTIVE_CLUSTERS = 2,
  HMMJIT_EFFECTIVE_ROWS = 3,
  HMMJIT_EFFECTIVE_SET = 4
};
enum { HMMJIT_PRIOR_MIXTURE = 0, HMMJIT_PRIOR_NONE = 1, HMMJIT_PRIOR_LAPLACE = 2 };

/* See BuildOptions in build.hpp for each. */
typedef struct hmmjit_build_options {
  size_t size;
  const char *matrix;      /* a name; NULL: BLOSUM62 */
  const char *matrix_file; /* a file that replaces it; NULL: none */
  double gap_open, gap_extend; /* probabilities; NaN: the default */
  int32_t single_rows_by_matrix, columns;
  double least_occupied, fragment;
  int32_t weights, effective;
  double weight_identity, effective_number, relative_entropy, total_entropy, effective_identity;
  int32_t prior, most_insertions; /* most_insertions 0: no limit */
  int32_t msv_length, msv_targets, viterbi_length, viterbi_targets, forward_length,
      forward_targets; /* of the calibration */
  double tail_mass;
  uint32_t seed;   /* 0: an arbitrary one */
  int32_t threads; /* 0: all cores granted */
} hmmjit_build_options;

/* HMMER's defaults; `size` must be set. */
HMMJIT_C_API int32_t hmmjit_build_options_init(hmmjit_build_options *options, hmmjit_error **error);
/* The model that phmmer searches with, of every sequence that has residues, in order. Results of it
 * are reported with the sequence's names. `options` may be NULL. */
HMMJIT_C_API int32_t hmmjit_build_models(const hmmjit_targets *sequences,
                                         const hmmjit_build_options *options, hmmjit_models **out,
                                         hmmjit_error **error);
/* What hmmbuild makes of each alignment of a file, or of its contents in memory, which `name`
 * stands for. `format`: NULL, or a name of hmmbuild's --informat. */
HMMJIT_C_API int32_t hmmjit_build_from_alignments(const char *path, const char *format,
                                                  const hmmjit_build_options *options,
                                                  hmmjit_models **out, hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_build_from_alignment_memory(const void *bytes, size_t size,
                                                        const char *format, const char *name,
                                                        const hmmjit_build_options *options,
                                                        hmmjit_models **out, hmmjit_error **error);

/* ---- searches in rounds ------------------------------------------------------------------------- */

typedef struct hmmjit_iteration hmmjit_iteration;

typedef struct hmmjit_iteration_options {
  size_t size;
  int32_t rounds; /* at most; default 5 */
  /* Of the main report. */
  int32_t prefer_accession, alignments, text_width; /* defaults 0, 1, 120 */
  int32_t a3m;                                      /* reports of HMMJIT_REPORT_A3M are wanted */
  int32_t reserved;
  const hmmjit_search_options *search; /* NULL: jackhmmer's, whose incE and incdomE are 0.001 */
  const hmmjit_build_options *build;   /* NULL: the defaults */
  const char
      *alignment_file; /* that the caller will write HMMJIT_REPORT_ALIGNMENT to; NULL: none */
} hmmjit_iteration_options;

/* jackhmmer's; `size` must be set. */
HMMJIT_C_API int32_t hmmjit_iteration_options_init(hmmjit_iteration_options *options,
                                                   hmmjit_error **error);
/* `queries`: protein sequences; those without residues are left out. `options` may be NULL. */
HMMJIT_C_API int32_t hmmjit_iteration_create(const hmmjit_targets *queries,
                                             const hmmjit_targets *targets,
                                             const hmmjit_iteration_options *options,
                                             hmmjit_iteration **out, hmmjit_error **error);
HMMJIT_C_API size_t hmmjit_iteration_queries(const hmmjit_iteration *iteration);
/* 1 when no query has a further round. */
HMMJIT_C_API int32_t hmmjit_iteration_done(const hmmjit_iteration *iteration);

/* One round of one query. */
typedef struct hmmjit_round hmmjit_round;
typedef struct hmmjit_round_info {
  size_t size;
  size_t query;            /* index among the queries */
  int32_t number;          /* from 1 */
  int32_t converged, last; /* nothing new was found; there is no further round */
  int32_t reserved;
  uint64_t included, new_targets; /* rows of the alignment; targets that the round before had not */
} hmmjit_round_info;
typedef struct hmmjit_rounds hmmjit_rounds;

/* The next round of every query that has one, side by side; none once done. `callbacks->result` is
 * not called; `callbacks` may be NULL. */
HMMJIT_C_API int32_t hmmjit_iteration_next(hmmjit_iteration *iteration,
                                           const hmmjit_callbacks *callbacks, hmmjit_rounds **out,
                                           hmmjit_error **error);
HMMJIT_C_API size_t hmmjit_rounds_count(const hmmjit_rounds *rounds);
/* In the order of queries; lives as long as `rounds`. NULL beyond the end. */
HMMJIT_C_API const hmmjit_round *hmmjit_rounds_get(const hmmjit_rounds *rounds, size_t index);
HMMJIT_C_API void hmmjit_rounds_free(hmmjit_rounds *rounds);
HMMJIT_C_API int32_t hmmjit_round_get_info(const hmmjit_round *round, hmmjit_round_info *info,
                                           hmmjit_error **error);
/* What the model found; lives as long as the rounds. */
HMMJIT_C_API const hmmjit_result *hmmjit_round_result(const hmmjit_round *round);
/* The model that was searched with. */
HMMJIT_C_API int32_t hmmjit_round_model(const hmmjit_round *round, hmmjit_models **out,
                                        hmmjit_error **error);
/* What was included, aligned with the query, in Stockholm format; "" where the search kept none. */
HMMJIT_C_API const char *hmmjit_round_alignment(const hmmjit_round *round);
/* A query whose rounds are done: the main report has all rounds, other kinds the last one. */
HMMJIT_C_API int32_t hmmjit_report_add_iteration(hmmjit_report *report,
                                                 const hmmjit_iteration *iteration, size_t query,
                                                 hmmjit_error **error);
HMMJIT_C_API void hmmjit_iteration_free(hmmjit_iteration *iteration);

/* ---- devices ----------------------------------------------------------------------------------- */

typedef struct hmmjit_device {
  size_t size;
  char name[128];
  int32_t ordinal; /* -1: a device of the built-in table */
  int32_t major, minor, sm_count, clock_khz;
  int32_t max_threads_per_sm, max_blocks_per_sm, registers_per_sm, max_registers_per_thread;
  int32_t shared_per_sm, shared_per_block, shared_reserved_per_block;
  int64_t memory_bytes, l2_bytes;
  double memory_bandwidth; /* bytes a second */
} hmmjit_device;

/* GPUs of this machine; 0 where there is none. `note` (may be NULL) receives what was found. */
HMMJIT_C_API int32_t hmmjit_device_count(int32_t *count, hmmjit_text **note, hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_device_get(int32_t ordinal, hmmjit_device *device,
                                       hmmjit_error **error);
/* A device of the built-in table: "H200", "sm_90", ... */
HMMJIT_C_API int32_t hmmjit_device_find(const char *name, hmmjit_device *device,
                                        hmmjit_error **error);
/* The run-time compiler: its version, 0 and a note (may be NULL) where there is none. */
HMMJIT_C_API int32_t hmmjit_compiler_version(int32_t *major, int32_t *minor, hmmjit_text **note,
                                             hmmjit_error **error);

/* ---- engine: own kernels ----------------------------------------------------------------------- */

typedef struct hmmjit_constant {
  const char *name;
  int64_t value;
} hmmjit_constant;

typedef struct hmmjit_template {
  const char *path, *text; /* "mine/kernel.cu", CUDA C++ */
} hmmjit_template;

typedef struct hmmjit_problem {
  size_t size;
  const char *family;
  const hmmjit_constant *parameters;
  size_t parameter_count;
} hmmjit_problem;

/* One way to run a variant. */
typedef struct hmmjit_configuration {
  size_t size;
  const hmmjit_constant *constants;
  size_t constant_count;
  int32_t threads_x, threads_y, threads_z; /* of one block */
  int32_t registers;                       /* per thread, a ceiling; more is refused */
  int32_t local_bytes;                     /* of a thread, by design; more is a spill */
  int32_t reserved;
  int64_t dynamic_shared_bytes;
  double items_per_clock_per_sm; /* ranks the configurations */
  const char *binding_resource;
} hmmjit_configuration;

/* What a catalogue entry fills in for a problem on a device. */
typedef struct hmmjit_offer hmmjit_offer;
HMMJIT_C_API int32_t hmmjit_offer_add(hmmjit_offer *offer,
                                      const hmmjit_configuration *configuration,
                                      hmmjit_error **error);
HMMJIT_C_API void hmmjit_offer_reject(hmmjit_offer *offer, const char *reason);

typedef struct hmmjit_variant {
  size_t size;
  const char *name, *family, *template_file, *entry_name;
  const char *const *compile_options;
  size_t compile_option_count;
  int32_t by_name_only; /* not chosen unless forced or alone */
  int32_t reserved;
  void *context;
  /* Adds configurations to the offer, or rejects. Pure; from any thread. */
  void (*configurations)(void *context, const hmmjit_problem *problem, const hmmjit_device *device,
                         hmmjit_offer *offer);
} hmmjit_variant;

typedef struct hmmjit_engine_settings {
  size_t size;
  const hmmjit_template *templates;
  size_t template_count;
  const hmmjit_variant *variants; /* all of the size of the first one's `size` */
  size_t variant_count;
  const hmmjit_cache *cache; /* NULL: the environment's */
  int32_t compile_threads, highest_compiler_major; /* 0: chosen */
} hmmjit_engine_settings;

typedef struct hmmjit_engine hmmjit_engine;
typedef struct hmmjit_plan hmmjit_plan;
typedef struct hmmjit_image hmmjit_image;

HMMJIT_C_API int32_t hmmjit_engine_create(const hmmjit_engine_settings *settings,
                                          hmmjit_engine **out, hmmjit_error **error);
HMMJIT_C_API void hmmjit_engine_free(hmmjit_engine *engine);
enum {
  HMMJIT_POLICY_DEFAULT = 0,   /* highest predicted rate */
  HMMJIT_POLICY_CUDAMPFPP = 1  /* stages of the search only: equations 4 and 5 of CUDAMPF++ */
};

typedef struct hmmjit_plan_options {
  size_t size;
  const char *variant;    /* a name to force; NULL: the policy chooses */
  int32_t policy;
  int32_t exact_length;   /* stages: for the length itself, not its class */
  int32_t alphabet_codes; /* stages: residue codes; 0: those of proteins, 29 */
  int32_t reserved;
} hmmjit_plan_options;

/* `options` may be NULL. */
HMMJIT_C_API int32_t hmmjit_engine_plan(const hmmjit_engine *engine, const hmmjit_problem *problem,
                                        const hmmjit_device *device,
                                        const hmmjit_plan_options *options, hmmjit_plan **out,
                                        hmmjit_error **error);
/* A stage of the profile search: "ssv", "msv", "bias", "viterbi", "forward", "gate", "parser",
   "ensemble", "envelope". */
HMMJIT_C_API int32_t hmmjit_engine_plan_stage(const hmmjit_engine *engine, const char *stage,
                                              int32_t model_length, const hmmjit_device *device,
                                              const hmmjit_plan_options *options,
                                              hmmjit_plan **out, hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_engine_render(const hmmjit_engine *engine, const hmmjit_plan *plan,
                                          hmmjit_text **out, hmmjit_error **error);
/* From memory, disk or the compiler. Waits. */
HMMJIT_C_API int32_t hmmjit_engine_compile(const hmmjit_engine *engine, const hmmjit_plan *plan,
                                           hmmjit_image **out, hmmjit_error **error);
HMMJIT_C_API void hmmjit_engine_cancel(const hmmjit_engine *engine);

HMMJIT_C_API const char *hmmjit_plan_text(const hmmjit_plan *plan);
HMMJIT_C_API const char *hmmjit_plan_json(const hmmjit_plan *plan);
HMMJIT_C_API const char *hmmjit_plan_variant(const hmmjit_plan *plan);
/* Value of a constant of the chosen candidate. */
HMMJIT_C_API int32_t hmmjit_plan_constant(const hmmjit_plan *plan, const char *name, int64_t *value,
                                          hmmjit_error **error);
HMMJIT_C_API void hmmjit_plan_free(hmmjit_plan *plan);

typedef struct hmmjit_image_info {
  size_t size;
  const char *name, *variant, *architecture, *origin, *log;
  const void *bytes;
  size_t byte_count;
  int32_t is_ptx;
  int32_t registers, local_bytes, spill_bytes, static_shared_bytes; /* -1: unknown */
  int32_t parameter_bytes;                                          /* -1: unknown */
  double seconds;
} hmmjit_image_info;

HMMJIT_C_API int32_t hmmjit_image_get_info(const hmmjit_image *image, hmmjit_image_info *info,
                                           hmmjit_error **error);
HMMJIT_C_API void hmmjit_image_free(hmmjit_image *image);

/* ---- engine: launches -------------------------------------------------------------------------- */

typedef struct hmmjit_gpu hmmjit_gpu;
typedef struct hmmjit_stream hmmjit_stream;
typedef struct hmmjit_event hmmjit_event;
typedef struct hmmjit_buffer hmmjit_buffer;
typedef struct hmmjit_kernel hmmjit_kernel;

HMMJIT_C_API int32_t hmmjit_gpu_open(int32_t ordinal, hmmjit_gpu **out, hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_gpu_get_device(const hmmjit_gpu *gpu, hmmjit_device *device,
                                           hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_gpu_memory(const hmmjit_gpu *gpu, uint64_t *free_bytes,
                                       uint64_t *total_bytes, hmmjit_error **error);
/* Waits for everything queued on the device; fails with the first error of earlier launches. */
HMMJIT_C_API int32_t hmmjit_gpu_synchronize(const hmmjit_gpu *gpu, hmmjit_error **error);
HMMJIT_C_API void hmmjit_gpu_free(hmmjit_gpu *gpu);

HMMJIT_C_API int32_t hmmjit_stream_create(const hmmjit_gpu *gpu, hmmjit_stream **out,
                                          hmmjit_error **error);
/* Waits; fails with the first error of what was queued. */
HMMJIT_C_API int32_t hmmjit_stream_synchronize(const hmmjit_stream *stream, hmmjit_error **error);
/* Whether everything queued is done: 1 or 0. Fails as synchronize does. */
HMMJIT_C_API int32_t hmmjit_stream_finished(const hmmjit_stream *stream, int32_t *finished,
                                            hmmjit_error **error);
/* Does not wait. */
HMMJIT_C_API void hmmjit_stream_free(hmmjit_stream *stream);

HMMJIT_C_API int32_t hmmjit_event_create(const hmmjit_gpu *gpu, int32_t timing, hmmjit_event **out,
                                         hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_event_record(hmmjit_event *event, const hmmjit_stream *stream,
                                         hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_event_synchronize(const hmmjit_event *event, hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_event_finished(const hmmjit_event *event, int32_t *finished,
                                           hmmjit_error **error);
/* Later work of `stream` waits for the event. */
HMMJIT_C_API int32_t hmmjit_event_wait_in(const hmmjit_event *event, const hmmjit_stream *stream,
                                          hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_event_milliseconds(const hmmjit_event *start, const hmmjit_event *end,
                                               float *milliseconds, hmmjit_error **error);
HMMJIT_C_API void hmmjit_event_free(hmmjit_event *event);

HMMJIT_C_API int32_t hmmjit_buffer_create(const hmmjit_gpu *gpu, size_t bytes, hmmjit_buffer **out,
                                          hmmjit_error **error);
/* For launch parameters, where the kernel has a pointer. */
HMMJIT_C_API uint64_t hmmjit_buffer_address(const hmmjit_buffer *buffer);
/* Queued copies; ranges are checked (HMMJIT_USAGE). The memory at `from` may be reused or freed once
 * upload has returned, unless it is page-locked (by another library): then when the stream has
 * passed. The memory at `to` is written until the stream has passed: it must live, and not be looked
 * at, until hmmjit_stream_synchronize, hmmjit_stream_finished or an event recorded after says so. */
HMMJIT_C_API int32_t hmmjit_buffer_upload(hmmjit_buffer *buffer, const hmmjit_stream *stream,
                                          const void *from, size_t bytes, size_t offset,
                                          hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_buffer_download(const hmmjit_buffer *buffer,
                                            const hmmjit_stream *stream, void *to, size_t bytes,
                                            size_t offset, hmmjit_error **error);
HMMJIT_C_API int32_t hmmjit_buffer_fill(hmmjit_buffer *buffer, const hmmjit_stream *stream,
                                        uint8_t value, size_t bytes, size_t offset,
                                        hmmjit_error **error);
/* Waits for work that uses it. */
HMMJIT_C_API void hmmjit_buffer_free(hmmjit_buffer *buffer);

HMMJIT_C_API int32_t hmmjit_engine_load(const hmmjit_engine *engine, const hmmjit_plan *plan,
                                        const hmmjit_gpu *gpu, hmmjit_kernel **out,
                                        hmmjit_error **error);
/* SMs times resident blocks. */
HMMJIT_C_API uint32_t hmmjit_kernel_resident_blocks(const hmmjit_kernel *kernel);
/* Queues one launch with the candidate's block; `parameters` is the kernel's one struct, copied at
 * once. */
HMMJIT_C_API int32_t hmmjit_kernel_launch(const hmmjit_kernel *kernel, const hmmjit_stream *stream,
                                          uint32_t blocks_x, uint32_t blocks_y, uint32_t blocks_z,
                                          const void *parameters, size_t parameter_bytes,
                                          hmmjit_error **error);
HMMJIT_C_API void hmmjit_kernel_free(hmmjit_kernel *kernel);

#ifdef __cplusplus
}
#endif

#endif
