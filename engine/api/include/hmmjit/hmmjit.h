/* clang-format off */
/* libhmmjit for C and for bindings of other languages.
 *
 *   hmmjit_models_load("globins4.hmm", &models, &error);
 *   hmmjit_targets_from_file("proteome.fasta", NULL, &targets, &error);
 *   if (hmmjit_search(models, targets, NULL, NULL, &results, &error) == HMMJIT_OK) ...
 *
 * This file describes the interface: C++ uses its structs, and generate.py derives the defaults of
 * options and Python's structs from it. Python shows the comments of members as sentences;
 * "default" ends them.
 *
 * Conventions
 *   Status    Functions that can fail return HMMJIT_OK or an error status, equal to the exit status
 *             of the hmmjit program. Their last argument, which may be NULL, receives an error
 *             object, which the caller frees. Functions write outputs on success only. No exception,
 *             exit, signal or printed output leaves the library, and it has no global state. Files
 *             truncated while they are read, also target databases, give HMMJIT_INPUT. Output files
 *             without a name ("" and "-"), or equal to an input of the call, give HMMJIT_USAGE.
 *   Handles   hmmjit_xxx pointers are opaque; hmmjit_xxx_free frees each and accepts NULL. A handle
 *             keeps alive what it depends on: free handles in any order.
 *   Structs   Every struct but hmmjit_constant, hmmjit_template, hmmjit_cutoff and
 *             hmmjit_filter_counts, which never grow, begins with its size, which the caller sets to
 *             sizeof: it tells the library which members the caller knows. Other members of inputs
 *             have their defaults; of outputs, the library writes at most `size` bytes. Structs grow
 *             only at the end. A caller newer than the library may know more members: in inputs they
 *             must be zero bytes (otherwise HMMJIT_USAGE: no request is ignored silently); in outputs
 *             the library sets them to zero bytes. Reserved members must be zero. Other values in
 *             these, and a size that no struct has (over 4096 bytes, or no multiple of
 *             sizeof(size_t)), give HMMJIT_USAGE.
 *   Texts     UTF-8, NUL-terminated. Texts in a struct belong to the handle that filled it and live
 *             as long. The library copies input texts. NULL and "" mean none.
 *   Threads   Several threads may call functions that take const handles concurrently; other
 *             functions, one thread at a time per handle. Any number of searches may run
 *             concurrently. By default each takes all cores and up to half of the free memory: a
 *             caller that runs N searches sets `threads` and `memory` to an N-th of these.
 *   Callbacks run with the floating-point mode of the thread that called the library; results do
 *             not depend on it. They must return: no longjmp, no exception.
 *   Symbols   are versioned (HMMJIT_0.1, ...); a published symbol keeps its meaning.
 *
 * Units: bits for scores, seconds for times, bytes for sizes, 1-based inclusive coordinates.
 */
#ifndef HMMJIT_H
#define HMMJIT_H

#include <stddef.h>
#include <stdint.h>

#ifdef HMMJIT_BUILDING_LIBRARY
#define hmmjit_device hmmjit_c_device /* the library has a namespace of that name */
#endif

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
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
const char *hmmjit_status_name(int32_t status);
/* The status that the function returned. */
int32_t hmmjit_error_status(const hmmjit_error *error);
/* The whole error on one line. */
const char *hmmjit_error_text(const hmmjit_error *error);
/* Its parts: what happened, where (may be ""), and the remedy (may be ""). */
const char *hmmjit_error_message(const hmmjit_error *error);
const char *hmmjit_error_where(const hmmjit_error *error);
const char *hmmjit_error_remedy(const hmmjit_error *error);
void hmmjit_error_free(hmmjit_error *error);

/* Major x 10000 + minor x 100 + patch: of this header, and of the library that runs, which may be
 * newer. Before 1.0 both must have the same minor version. */
#define HMMJIT_HEADER_VERSION 100
int32_t hmmjit_version_number(void);
/* "0.1.0" of the library that runs. */
const char *hmmjit_version(void);

/* A text made for the caller. */
typedef struct hmmjit_text hmmjit_text;
/* The bytes, followed by a NUL, and their number without it. */
const char *hmmjit_text_data(const hmmjit_text *text);
size_t hmmjit_text_size(const hmmjit_text *text);
void hmmjit_text_free(hmmjit_text *text);

/* ---- models ------------------------------------------------------------------------------------ */

enum { HMMJIT_AMINO = 0, HMMJIT_DNA = 1, HMMJIT_RNA = 2 };

typedef struct hmmjit_models hmmjit_models;

typedef struct hmmjit_model_info {
  size_t size;
  const char *name;        /* one word */
  const char *accession;   /* one word; "" where there is none */
  const char *description; /* one line; "" where there is none */
  const char *consensus;   /* `length` characters */
  int32_t length;          /* positions */
  int32_t alphabet;        /* HMMJIT_AMINO, ... */
  double gathering;        /* cutoff of targets, in bits; NaN where the model has none */
  double gathering_domain; /* cutoff of domains */
  double trusted;          /* as gathering */
  double trusted_domain;   /* as gathering_domain */
  double noise;            /* as gathering */
  double noise_domain;     /* as gathering_domain */
  const char *query_name;  /* of the sequence that reports name in place of the model; "": none */
  const char *query_accession;   /* of that sequence */
  const char *query_description; /* of that sequence */
  const float *match;       /* emissions of match states: `length` + 1 rows of `letters`, row 0 unused */
  const float *insert;      /* emissions of insert states: `length` + 1 rows of `letters` */
  const float *transition;  /* `length` + 1 rows of MM, MI, MD, IM, II, DM, DD; row 0 of the begin state */
  const float *composition; /* mean emission of the model, of `letters`; NULL: unknown */
  int32_t letters;          /* of the alphabet, in alphabetical order: 20 for proteins */
  int32_t reserved;
  double msv_mu;         /* location of the distribution of MSV scores, in bits; NaN: not calibrated */
  double msv_lambda;     /* slope of that distribution */
  double viterbi_mu;     /* location of the distribution of Viterbi scores, in bits */
  double viterbi_lambda; /* slope of that distribution */
  double forward_tau;    /* location of the tail of Forward scores, in bits */
  double forward_lambda; /* slope of that tail */
} hmmjit_model_info;

/* create: no models. from_file: a file that each search reads. load: reads a file now. from_memory:
 * parses bytes; messages use `name` as path. Formats: HMMER3 text and binary, HMMER2 text; plain,
 * gzip or zstd. */
int32_t hmmjit_models_create(hmmjit_models **out, hmmjit_error **error);
int32_t hmmjit_models_from_file(const char *path, hmmjit_models **out, hmmjit_error **error);
int32_t hmmjit_models_load(const char *path, hmmjit_models **out, hmmjit_error **error);
int32_t hmmjit_models_from_memory(const void *bytes, size_t size, const char *name,
                                  hmmjit_models **out, hmmjit_error **error);
/* Appends model `index` of `from`. Do not call it while a search uses `models`. */
int32_t hmmjit_models_add(hmmjit_models *models, const hmmjit_models *from, size_t index,
                          hmmjit_error **error);
/* As hmmjit_models_add, with a query sequence that reports name in place of the model; query_name
 * NULL: none. */
int32_t hmmjit_models_add_with_query(hmmjit_models *models, const hmmjit_models *from, size_t index,
                                     const char *query_name, const char *query_accession,
                                     const char *query_description, hmmjit_error **error);
/* As hmmjit_models_add, with the names, cutoffs and query of `info`, a changed result of
 * hmmjit_models_get; ignores other members. HMMJIT_USAGE for names that tables cannot hold. */
int32_t hmmjit_models_add_changed(hmmjit_models *models, const hmmjit_models *from, size_t index,
                                  const hmmjit_model_info *info, hmmjit_error **error);
/* Model `index` as a profile file: text in format HMMER3/f, with five digits of each probability,
 * or binary (.h3m), with all of their bits. HMMJIT_INPUT if no program could read the text. */
int32_t hmmjit_models_write(const hmmjit_models *models, size_t index, int32_t binary,
                            hmmjit_text **out, hmmjit_error **error);
/* Models in memory; 0 for from_file. */
size_t hmmjit_models_count(const hmmjit_models *models);
/* Describes model `index` in memory. */
int32_t hmmjit_models_get(const hmmjit_models *models, size_t index, hmmjit_model_info *info,
                          hmmjit_error **error);
/* Calls `visit` for each model, in memory or read from the file, until `visit` returns a value
 * other than 0. `one` holds only this model (number 0 of hmmjit_models_get and hmmjit_models_add)
 * and lives until `visit` returns. */
int32_t hmmjit_models_for_each(const hmmjit_models *models,
                               int32_t (*visit)(void *context, const hmmjit_models *one),
                               void *context, hmmjit_error **error);
void hmmjit_models_free(hmmjit_models *models);

/* ---- targets ----------------------------------------------------------------------------------- */

typedef struct hmmjit_targets hmmjit_targets;

/* As for models. `format`: NULL, or a name of hmmsearch's --tformat. Formats: FASTA, EMBL/UniProt,
 * GenBank and alignments; plain, gzip or zstd. Also target databases (.hjdb), recognised by
 * content; `format` must be NULL. Searches read a database given to from_file; load and from_memory
 * copy its targets. */
int32_t hmmjit_targets_create(int32_t alphabet, hmmjit_targets **out, hmmjit_error **error);
int32_t hmmjit_targets_from_file(const char *path, const char *format, hmmjit_targets **out,
                                 hmmjit_error **error);
int32_t hmmjit_targets_load(const char *path, int32_t alphabet, const char *format,
                            hmmjit_targets **out, hmmjit_error **error);
int32_t hmmjit_targets_from_memory(const void *bytes, size_t size, int32_t alphabet,
                                   const char *format, const char *name, hmmjit_targets **out,
                                   hmmjit_error **error);
/* A session: the same targets, kept from one search to the next with everything that searches of
 * them need. Reads sequences now; maps a target database, so its file must not change in place. The
 * first search with GPUs starts them for all searches, with its device, gpus, vram and cache.
 * Kernels and, while there is room, targets stay on the GPUs. Any number of threads may search.
 * Searches with equal settings share a run; other runs take turns on the GPUs, in the order of
 * calls. Targets cannot be added. `alphabet`: of a file. */
int32_t hmmjit_targets_keep(const hmmjit_targets *targets, int32_t alphabet, hmmjit_targets **out,
                            hmmjit_error **error);
/* `residues`: `length` letters of the alphabet in either case; drops white space. HMMJIT_USAGE for
 * blanks and control characters in name or accession, and for control characters other than tabs in
 * the description. Do not call it while a search uses `targets`. */
int32_t hmmjit_targets_add(hmmjit_targets *targets, const char *name, const char *accession,
                           const char *description, const char *residues, size_t length,
                           hmmjit_error **error);
/* Appends all targets of `from`, from memory or its file. Do not call it while a search uses
 * `targets`. */
int32_t hmmjit_targets_append(hmmjit_targets *targets, const hmmjit_targets *from,
                              hmmjit_error **error);
/* Number of targets, and of their residues, in memory; 0 for from_file. */
uint64_t hmmjit_targets_count(const hmmjit_targets *targets);
uint64_t hmmjit_targets_residues(const hmmjit_targets *targets);
/* One target. Its texts belong to the caller of `visit` and live until it returns. */
typedef struct hmmjit_target {
  size_t size;
  const char *name;        /* one word */
  const char *accession;   /* one word; "" where there is none */
  const char *description; /* one line; "" where there is none */
  const char *residues;    /* `length` letters, upper case */
  uint64_t index;          /* among the targets, from 0 */
  uint64_t length;         /* residues */
} hmmjit_target;
/* Calls `visit` for each target from number `first` on, in order, in memory or read from the file,
 * until `visit` returns a value other than 0. */
int32_t hmmjit_targets_for_each(const hmmjit_targets *targets, int32_t alphabet, uint64_t first,
                                int32_t (*visit)(void *context, const hmmjit_target *target),
                                void *context, hmmjit_error **error);
void hmmjit_targets_free(hmmjit_targets *targets);

/* ---- target databases -------------------------------------------------------------------------- */

typedef struct hmmjit_database_info {
  size_t size;
  int32_t format_version; /* of the file */
  int32_t alphabet;       /* HMMJIT_AMINO, ... */
  uint64_t targets;       /* sequences */
  uint64_t residues;      /* of all sequences */
  uint32_t shortest;      /* residues of the shortest sequence */
  uint32_t median;        /* residues of the median sequence */
  uint32_t longest;       /* residues of the longest sequence */
  uint32_t reserved;
  uint64_t file_bytes; /* size of the file */
  uint64_t identity;   /* digest of the sequences and their order, not of the source files */
} hmmjit_database_info;

/* Writes the targets of `count` inputs, in order, to the file `path`, which appears once
 * complete. */
int32_t hmmjit_database_build(const hmmjit_targets *const *inputs, size_t count, int32_t alphabet,
                              const char *path, hmmjit_error **error);
/* Reads the header only. `about` (may be NULL) receives lines "program ..." and "source ...". */
int32_t hmmjit_database_get_info(const char *path, hmmjit_database_info *info, hmmjit_text **about,
                                 hmmjit_error **error);
/* Checks every byte: HMMJIT_INPUT at the first damage. */
int32_t hmmjit_database_verify(const char *path, hmmjit_error **error);

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
  const char *directory;        /* the user's folder; "": none; default NULL: the environment's */
  const char *system_directory; /* a folder shared by all users; as `directory` */
  int32_t mode;                 /* HMMJIT_CACHE_...; default -1: the environment's */
  int32_t allow_group;          /* accept a folder that its group may write; default 0 */
  uint64_t max_bytes;           /* bound on the folder; default 0: the environment's */
  uint64_t max_memory_bytes;    /* bound on images in memory; default 0: the environment's */
} hmmjit_cache_settings;

typedef struct hmmjit_cache_statistics {
  size_t size;
  uint64_t memory_hits;      /* kernels found in memory, through this handle */
  uint64_t user_hits;        /* kernels found in the user's folder */
  uint64_t system_hits;      /* kernels found in the folder of all users */
  uint64_t misses;           /* kernels not found */
  uint64_t published;        /* kernels stored */
  uint64_t publish_failures; /* kernels that could not be stored */
  uint64_t bad_entries;      /* files that are damaged, or whose owner or mode is not trusted */
  uint64_t refused_entries;  /* intact files that the driver would not load */
  uint64_t entries;          /* kernels in the user's folder */
  uint64_t disk_bytes;       /* size of the user's folder */
} hmmjit_cache_statistics;

/* `settings` NULL: all from the environment (HMMJIT_CACHE_*). */
int32_t hmmjit_cache_open(const hmmjit_cache_settings *settings, hmmjit_cache **out,
                          hmmjit_error **error);
/* The user's folder; "": none. */
const char *hmmjit_cache_directory(const hmmjit_cache *cache);
/* Scans that folder. */
int32_t hmmjit_cache_get_statistics(const hmmjit_cache *cache, hmmjit_cache_statistics *statistics,
                                    hmmjit_error **error);
/* trim: removes the least recently used entries until at most `max_bytes` are left (0: the
 * settings' bound). clear: removes all entries. export: writes all entries to one file. import:
 * adds the entries of such a file; import only trusted files, because the kernels run. `count` (may
 * be NULL) receives the number of entries removed, written or new. */
int32_t hmmjit_cache_trim(const hmmjit_cache *cache, uint64_t max_bytes, uint64_t *count,
                          hmmjit_error **error);
int32_t hmmjit_cache_clear(const hmmjit_cache *cache, uint64_t *count, hmmjit_error **error);
int32_t hmmjit_cache_export(const hmmjit_cache *cache, const char *path, uint64_t *count,
                            hmmjit_error **error);
int32_t hmmjit_cache_import(const hmmjit_cache *cache, const char *path, uint64_t *count,
                            hmmjit_error **error);
void hmmjit_cache_free(hmmjit_cache *cache);

/* ---- search ------------------------------------------------------------------------------------ */

enum {
  HMMJIT_CUT_NONE = 0,
  HMMJIT_CUT_GA = 1,
  HMMJIT_CUT_NC = 2,
  HMMJIT_CUT_TC = 3,
  HMMJIT_CUT_TABLE = 4 /* those of `cutoff_table` */
};
/* A model without the requested cutoffs: an error, skipped, or judged by the thresholds. */
enum { HMMJIT_MISSING_ERROR = 0, HMMJIT_MISSING_SKIP = 1, HMMJIT_MISSING_DEFAULT = 2 };
enum { HMMJIT_DEVICE_AUTO = 0, HMMJIT_DEVICE_CPU = 1, HMMJIT_DEVICE_GPU = 2 };

/* Cutoffs of one model, in bits; NaN: no threshold. */
typedef struct hmmjit_cutoff {
  const char *model; /* name, accession, or accession without version */
  double score;      /* of targets */
  double domain_score; /* of domains */
} hmmjit_cutoff;

typedef struct hmmjit_search_options {
  size_t size;
  double E;       /* report targets of at most this E-value; default 10 */
  double domE;    /* report domains of at most this conditional E-value; default 10 */
  double incE;    /* include targets of at most this E-value; default 0.01 */
  double incdomE; /* include domains of at most this conditional E-value; default 0.01 */
  double T;       /* report targets of at least this score in bits, in place of E; default NaN */
  double domT;    /* report domains of at least this score in bits, in place of domE; default NaN */
  double incT;    /* include targets of at least this score in bits, in place of incE; default NaN */
  double incdomT; /* include domains of at least this score in bits, in place of incdomE; default NaN */
  int32_t cutoffs;         /* the models' own cutoffs in place of these thresholds; default 0: none */
  int32_t max_sensitivity; /* switch all filters off (--max); default 0 */
  double Z;                /* number of targets for E-values, finite; default 0: counted */
  double domZ;             /* number of targets for conditional E-values; default 0: counted */
  double F1;               /* P-value threshold of the MSV filter; default 0.02 */
  double F2;               /* P-value threshold of the Viterbi filter; default 0.001 */
  double F3;               /* P-value threshold of the Forward filter; default 0.00001 */
  int32_t bias_filter;     /* use the composition bias filter; default 1 */
  int32_t null2;           /* correct scores for biased composition; default 1 */
  uint32_t seed;           /* of random numbers, 0: an arbitrary one; default 42 */
  int32_t keep_alignments; /* keep the alignments of domains; default 1 */
  int32_t threads;         /* busy threads at most, 0: all available cores; default 0 */
  int32_t device;          /* HMMJIT_DEVICE_...: where filters run; default 0: a GPU where it pays */
  uint64_t memory;         /* bound in bytes, 65,536 at least, 0: half of the free memory; default 0 */
  uint64_t vram;           /* bytes of each GPU, 0: nine tenths of its free memory; default 0 */
  const int32_t *gpus;     /* ordinals of GPUs; default NULL: the first one */
  size_t gpu_count;        /* numbers in `gpus`; default 0 */
  int32_t verify; /* targets per model whose GPU result is checked on the CPU, -1: as many as take one
                   * hundredth of the core-seconds; default -1 */
  int32_t reserved;
  const hmmjit_cache *cache; /* of kernels; default NULL: the environment's */
  const char *first_target;  /* begin at the target of this name; default NULL: the first */
  int64_t target_count;      /* search as many targets at most, -1: all; default -1 */
  int32_t missing_cutoffs;   /* HMMJIT_MISSING_...: models without `cutoffs`; default 0: an error */
  int32_t reserved_too;
  const hmmjit_cutoff *cutoff_table; /* of HMMJIT_CUT_TABLE; default NULL */
  size_t cutoff_count;               /* elements of `cutoff_table`; default 0 */
} hmmjit_search_options;

/* Sets hmmsearch's defaults; set `size` first. Initialise every struct of options this way: a zero
 * member means zero, not the default. */
int32_t hmmjit_search_options_init(hmmjit_search_options *options, hmmjit_error **error);

typedef struct hmmjit_progress {
  size_t size;
  uint64_t models_started;     /* set up; in a scan, for each batch of sequences */
  uint64_t models_done;        /* their results delivered; in a scan, for each batch */
  uint64_t targets;            /* read so far */
  uint64_t residues;           /* read so far */
  uint64_t target_bytes_read;  /* of the target file */
  uint64_t target_bytes_total; /* size of the target file; 0: unknown */
  uint64_t cells;              /* model positions x residues that are filtered */
  uint64_t cells_queued;       /* the same of all models started, for the targets read */
  int32_t targets_complete;    /* all targets are read */
  int32_t reserved;
} hmmjit_progress;

typedef struct hmmjit_result hmmjit_result;
typedef struct hmmjit_cancellation hmmjit_cancellation;

/* Members may be NULL. A callback returns 0 to continue, any other value to cancel the search.
 * Callbacks run on threads of the search. */
typedef struct hmmjit_callbacks {
  size_t size;
  void *context;
  /* Receives each result in model order, one at a time; `result` lives until the callback returns
   * (see hmmjit_result_copy). With this callback, results are not collected. */
  int32_t (*result)(void *context, const hmmjit_result *result);
  int32_t (*progress)(void *context, const hmmjit_progress *progress);
  uint32_t interval_ms; /* between calls of progress; 0: 250 */
  uint32_t reserved;
  const hmmjit_cancellation *cancellation;
  /* Receives problems that do not stop the search, one at a time: a lost GPU, an unusable cache
   * folder. `warning` lives until the callback returns. */
  void (*warning)(void *context, const hmmjit_error *warning);
} hmmjit_callbacks;

/* One handle may cancel any number of searches. */
int32_t hmmjit_cancellation_create(hmmjit_cancellation **out, hmmjit_error **error);
/* Call it from any thread, or from a signal handler. */
void hmmjit_cancellation_cancel(const hmmjit_cancellation *cancellation);
void hmmjit_cancellation_free(hmmjit_cancellation *cancellation);

typedef struct hmmjit_results hmmjit_results;

/* Searches every model against every target. `options` and `callbacks` may be NULL. Returns once
 * all is done. */
int32_t hmmjit_search(const hmmjit_models *models, const hmmjit_targets *targets,
                      const hmmjit_search_options *options, const hmmjit_callbacks *callbacks,
                      hmmjit_results **out, hmmjit_error **error);
/* Searches every sequence with every model, as hmmscan does: one result per sequence, in order. Its
 * info names the sequence, its hits are models. Unless set, Z is the number of models. A model
 * without the requested cutoffs is an error once a sequence passes its bias filter. */
int32_t hmmjit_scan(const hmmjit_models *models, const hmmjit_targets *sequences,
                    const hmmjit_search_options *options, const hmmjit_callbacks *callbacks,
                    hmmjit_results **out, hmmjit_error **error);

typedef struct hmmjit_filter_counts {
  uint64_t targets;  /* searched */
  uint64_t residues; /* of these */
  uint64_t msv;      /* targets that passed the MSV filter */
  uint64_t bias;     /* targets that passed the bias filter */
  uint64_t viterbi;  /* targets that passed the Viterbi filter */
  uint64_t forward;  /* targets that passed the Forward filter */
} hmmjit_filter_counts;

/* Seconds of stages are CPU time, summed over threads. */
typedef struct hmmjit_search_statistics {
  size_t size;
  const char *backend; /* what filtered: "cpu/AVX2", "gpu/sm_90 H200+cpu/AVX2", ... */
  const char *device;  /* "ready", "failed: why", ... of the GPU, or why none was used */
  int32_t threads;     /* busy threads at most */
  int32_t reserved;
  uint64_t models;           /* searched */
  uint64_t targets;          /* searched */
  uint64_t residues;         /* of the targets */
  uint64_t passes;           /* over the targets: 1 unless they exceed the memory bound */
  uint64_t hits_reported;    /* targets reported, of all models */
  uint64_t domains_reported; /* domains reported, of all models */
  uint64_t device_cells;     /* model positions x residues on GPUs */
  uint64_t device_launches;  /* kernel launches */
  double wall_seconds;       /* from the first model read to the last result delivered */
  double read_seconds;       /* core-seconds of parsing targets */
  double setup_seconds;      /* core-seconds of making profiles */
  double msv_seconds;        /* core-seconds of the MSV filter on the CPU */
  double bias_seconds;       /* core-seconds of the bias filter on the CPU */
  double viterbi_seconds;    /* core-seconds of the Viterbi filter on the CPU */
  double scoring_seconds;    /* core-seconds of Forward and everything after it */
  hmmjit_filter_counts counts; /* summed over models */
  int32_t streamed;            /* the targets exceeded their part of the memory bound */
  int32_t spooled;             /* the targets came from a pipe and were copied to a temporary file */
  double ssv_seconds;          /* core-seconds of the SSV filter on the CPU */
  double report_seconds;       /* core-seconds in the `result` callback */
  uint64_t verified;            /* pairs of model and target whose GPU result was checked */
  uint64_t peak_resident_bytes; /* of the process so far */
  double device_busy_seconds;   /* with at least one kernel running */
  double device_active_seconds; /* from ready, or the begin of the search, to the last result */
  uint64_t device_peak_bytes;   /* of device memory, the largest of the devices */
  uint64_t device_upload_bytes; /* copied to devices */
  uint64_t kernels;             /* different kernels that the session has loaded */
  uint64_t kernels_compiled;    /* of these, made by this search */
  uint64_t kernels_loaded;      /* of these, taken from the kernel cache by this search */
  double compile_seconds;       /* of compiling, summed over threads */
  const char *json;             /* all that was measured: the text of hmmjit search --stats */
} hmmjit_search_statistics;

/* Number of collected results; 0 with a `result` callback. */
size_t hmmjit_results_count(const hmmjit_results *results);
/* The result of model `index`, in input order; lives as long as `results`. NULL beyond the end. */
const hmmjit_result *hmmjit_results_get(const hmmjit_results *results, size_t index);
/* Counters and times of the search; `json` lives as long as `results`. */
int32_t hmmjit_results_statistics(const hmmjit_results *results,
                                  hmmjit_search_statistics *statistics, hmmjit_error **error);
/* The options that determine the results, for reports; options of the machine (threads, memory,
 * devices, cache) have their defaults. For merged parts: the options of their search. */
int32_t hmmjit_results_get_options(const hmmjit_results *results, hmmjit_search_options *options,
                                   hmmjit_error **error);
void hmmjit_results_free(hmmjit_results *results);

/* ---- results of one model ---------------------------------------------------------------------- */

typedef struct hmmjit_result_info {
  size_t size;
  size_t model_index;            /* among the models searched, from 0 */
  const char *model_name;        /* of the model, or of the sequence it was built from */
  const char *model_accession;   /* "" where there is none */
  const char *model_description; /* "" where there is none */
  int32_t model_length;          /* positions of the model */
  int32_t has_alignments;        /* the search kept alignments */
  size_t hits;                   /* candidates, in hmmsearch's order */
  size_t reported;               /* candidates that satisfy the reporting thresholds */
  size_t included;               /* candidates that also satisfy the inclusion thresholds */
  size_t domains;                /* of all candidates together */
  double Z;                      /* number of targets assumed for E-values; 1 for nhmmer */
  double domZ;                   /* number of targets assumed for conditional E-values */
  double seconds;                /* from set-up to the last domain; other models run at the same time */
  hmmjit_filter_counts counts;   /* targets that passed each filter */
  int32_t long_targets;          /* of nhmmer: each domain is a hit of its own, on one of two strands */
  int32_t scan;                  /* of hmmjit_scan: the query is a sequence, of model_length residues, and hits are models */
} hmmjit_result_info;

typedef struct hmmjit_hit {
  size_t size;
  const char *name;        /* of the target */
  const char *accession;   /* "" where there is none */
  const char *description; /* "" where there is none */
  uint64_t index;          /* among the targets searched, from 0 */
  double e_value;          /* expected number of false hits of this score among Z targets */
  double score;            /* bits, of the whole target */
  double bias;             /* bits subtracted for biased composition */
  double expected_domains; /* mean number over all paths (Forward) */
  int32_t length;          /* residues */
  int32_t reported;        /* satisfies the reporting thresholds */
  int32_t included;        /* also satisfies the inclusion thresholds */
  int32_t regions;         /* found by posterior decoding */
  int32_t clustered;       /* regions resolved by clustering sampled paths */
  int32_t overlaps;        /* envelopes that overlap their neighbour */
  int32_t envelopes;       /* found in these regions */
  int32_t reserved;
  size_t best_domain;  /* among its domains, from 0 */
  size_t first_domain; /* its first one among all domains of the result */
  size_t domains;      /* number of its domains */
  double ln_p;         /* natural logarithm of the P-value: exact where the E-value is 0 */
} hmmjit_hit;

typedef struct hmmjit_domain {
  size_t size;
  size_t hit;             /* index of its target among the hits */
  int32_t envelope_from;  /* first residue of the envelope, on the target */
  int32_t envelope_to;    /* last residue of the envelope, on the target */
  int32_t alignment_from; /* first aligned residue, on the target */
  int32_t alignment_to;   /* last aligned residue, on the target */
  int32_t model_from;     /* first aligned position of the model */
  int32_t model_to;       /* last aligned position of the model */
  int32_t reported;       /* satisfies the reporting thresholds, as does its target */
  int32_t included;       /* also satisfies the inclusion thresholds */
  double score;           /* bits */
  double bias;            /* bits subtracted for biased composition */
  double conditional_e_value; /* expected number of such domains among the domZ targets reported (c-Evalue) */
  double independent_e_value; /* E-value as if it were the only domain (i-Evalue) */
  double accuracy;            /* mean posterior probability of the aligned residues, 0 to 1 */
  const char *model;          /* alignment: consensus of the model, '.' at insertions; "": not kept */
  const char *match;          /* alignment: letters where both agree, '+' where the model favours the residue */
  const char *sequence;       /* alignment: residues, '-' at deletions, lower case at insertions */
  const char *posterior;      /* alignment: '0' to '9' and '*', posterior probability of each residue */
  const char *reference;      /* alignment: reference annotation (RF) of the model; "": none */
  const char *structure;      /* alignment: structure annotation (CS) of the model; "": none */
  double ln_p;                /* natural logarithm of the P-value: exact where the E-value is 0 */
} hmmjit_domain;

/* Describes the result; its texts live as long as `result`. */
int32_t hmmjit_result_get_info(const hmmjit_result *result, hmmjit_result_info *info,
                               hmmjit_error **error);
/* Fills `count` structs from number `first` on; the `size` of the first struct applies to all. */
int32_t hmmjit_result_get_hits(const hmmjit_result *result, size_t first, size_t count,
                               hmmjit_hit *hits, hmmjit_error **error);
int32_t hmmjit_result_get_domains(const hmmjit_result *result, size_t first, size_t count,
                                  hmmjit_domain *domains, hmmjit_error **error);
/* A second handle for the same result. */
int32_t hmmjit_result_copy(const hmmjit_result *result, hmmjit_result **out, hmmjit_error **error);
/* Serialises a result for other processes with the same version, and reads it. HMMJIT_INPUT for
 * other bytes. */
int32_t hmmjit_result_write(const hmmjit_result *result, hmmjit_text **out, hmmjit_error **error);
int32_t hmmjit_result_read(const void *bytes, size_t size, hmmjit_result **out,
                           hmmjit_error **error);
/* Joins the results of one model against several sets of targets into the result of one search of
 * all sets, in this order. `options`: of the searches, without cutoffs; NULL: the defaults. */
int32_t hmmjit_result_merge(const hmmjit_result *const *results, size_t count,
                            const hmmjit_search_options *options, hmmjit_result **out,
                            hmmjit_error **error);
void hmmjit_result_free(hmmjit_result *result);

/* ---- nucleotide searches in long targets -------------------------------------------------------- */

enum { HMMJIT_STRANDS_BOTH = 0, HMMJIT_STRANDS_TOP = 1, HMMJIT_STRANDS_BOTTOM = 2 };

typedef struct hmmjit_nhmmer_options {
  size_t size;
  const hmmjit_search_options *search; /* default NULL: nhmmer's, whose F2 is 0.003 and F3 0.00003 */
  int32_t strands;       /* HMMJIT_STRANDS_...; default 0: both */
  int32_t window_length; /* residues of the longest hit expected (--w_length), 0: the model's; default 0 */
  double window_beta;    /* tail mass at which that length is determined (--w_beta), 0: the model's; default 0 */
  int32_t B1;            /* window of the bias filter after SSV, in residues; default 110 */
  int32_t B2;            /* window of the bias filter after Viterbi; default 240 */
  int32_t B3;            /* window of the bias filter after Forward; default 1000 */
  int32_t block_length;  /* residues of the pieces of targets, 50,000 at least; default 262144 */
} hmmjit_nhmmer_options;

/* Sets nhmmer's defaults; set `size` first. */
int32_t hmmjit_nhmmer_options_init(hmmjit_nhmmer_options *options, hmmjit_error **error);
/* Searches DNA or RNA models in targets of any length, on both strands, as nhmmer does. Every
 * domain is a hit; positions on the bottom strand descend (alignment_from > alignment_to). E-values
 * refer to both strands; `ln_p` is the logarithm of the E-value. Filters count residues. Search
 * options: Z is in millions of residues; domain thresholds have no effect; `memory` bounds models
 * and targets but not hits; the search uses at most one GPU; `verify` counts checks of each answer
 * of the GPU. `options` and `callbacks` may be NULL. */
int32_t hmmjit_nhmmer(const hmmjit_models *models, const hmmjit_targets *targets,
                      const hmmjit_nhmmer_options *options, const hmmjit_callbacks *callbacks,
                      hmmjit_results **out, hmmjit_error **error);

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
  /* hmmscan's tables, by target; set the search's Z to the number of models. */
  HMMJIT_REPORT_SCAN_TARGET_TABLE = 8,
  HMMJIT_REPORT_SCAN_DOMAIN_TABLE = 9,
  HMMJIT_REPORT_HTML_PAGE = 10,
  HMMJIT_REPORT_DFAM_TABLE = 11 /* of nhmmer */
};

typedef struct hmmjit_report hmmjit_report;

typedef struct hmmjit_report_options {
  size_t size;
  int32_t prefer_accession; /* show accessions in place of names; default 0 */
  int32_t alignments;       /* show the alignments of domains; default 1 */
  int32_t text_width;       /* columns of the main report, 120 at least, 0: unlimited; default 120 */
  int32_t reserved;
  const hmmjit_search_options *search; /* the search's filters, which the main report repeats, and
                                        * thresholds, for tables by target; default NULL: defaults */
  const char *page_title; /* of the HTML page; default NULL: the program */
  uint64_t page_targets;  /* targets on it, those of the best E-values, 0: all; default 0 */
} hmmjit_report_options;

/* The run, for the comment lines of tables. */
typedef struct hmmjit_run_info {
  size_t size;
  const char *program;     /* name of the program; NULL: the library's */
  const char *version;     /* of that program; NULL: the library's */
  const char *query_file;  /* path of models or queries */
  const char *target_file; /* path of targets */
  const char *settings;    /* command line */
  const char *folder;      /* current directory */
  const char *date;        /* one line */
} hmmjit_run_info;

/* `path`: a file, which appears once complete; NULL: a report in memory. `options` may be NULL. */
int32_t hmmjit_report_create(int32_t kind, const char *path, const hmmjit_report_options *options,
                             hmmjit_report **out, hmmjit_error **error);
/* The head of the main report: the searched files and the settings that are not defaults. */
int32_t hmmjit_main_report_header(const hmmjit_run_info *run, const hmmjit_report_options *options,
                                  hmmjit_text **out, hmmjit_error **error);
/* Adds text here to the output, such as the main report's header. */
int32_t hmmjit_report_add_text(hmmjit_report *report, const char *text, hmmjit_error **error);
/* HMMJIT_USAGE if this kind cannot show the result, and after complete. */
int32_t hmmjit_report_add(hmmjit_report *report, const hmmjit_result *result, hmmjit_error **error);
/* Writes the closing lines; a file then gets its name. Call it once. */
int32_t hmmjit_report_complete(hmmjit_report *report, const hmmjit_run_info *run,
                               hmmjit_error **error);
/* Takes the text added since the last call from a report in memory. */
int32_t hmmjit_report_take_text(hmmjit_report *report, hmmjit_text **out, hmmjit_error **error);
void hmmjit_report_free(hmmjit_report *report);

/* ---- parts of a search over many machines ------------------------------------------------------- */

/* Header of a part file. */
typedef struct hmmjit_part_info {
  size_t size;
  uint32_t part;      /* first share of the targets, from 1 */
  uint32_t last_part; /* last share of the targets */
  uint32_t parts;     /* shares of the targets in all */
  uint32_t reserved;
  uint64_t first_target;     /* index in the database, from 0 */
  uint64_t last_target;      /* index in the database, excluded */
  uint64_t first_model;      /* index among all models, from 0 */
  uint64_t last_model;       /* index among all models, excluded */
  uint64_t targets_reported; /* of all its models */
  uint64_t domains;          /* of these targets */
  char content[64]; /* digest: equal for any threads, memory, device and order of merging */
  uint32_t model_part;      /* first share of the models, from 1 */
  uint32_t last_model_part; /* last share of the models */
  uint32_t model_parts;     /* shares of the models in all */
  uint32_t reserved_too;
} hmmjit_part_info;

/* Searches part `part` (from 1) of `parts` of a database (hmmjit_database_build) and writes it to
 * the file `output`, which appears once complete. `callbacks->result` is not called. `options`,
 * `callbacks` and `info` may be NULL. HMMJIT_USAGE for an invalid part number, a seed of 0 and
 * options that restrict the targets; HMMJIT_INPUT for a file that is not a database. */
int32_t hmmjit_search_part(const hmmjit_models *models, const char *database, uint32_t part,
                           uint32_t parts, const char *output, const hmmjit_search_options *options,
                           const hmmjit_callbacks *callbacks, hmmjit_part_info *info,
                           hmmjit_error **error);
/* As hmmjit_search_part, with share `model_part` (from 1) of `model_parts` of the models; shares
 * have about equal positions. `models`: all models of the search. A file that is not loaded needs
 * an index (`hmmjit part index`); without one, HMMJIT_INPUT. */
int32_t hmmjit_search_model_part(const hmmjit_models *models, const char *database, uint32_t part,
                                 uint32_t parts, uint32_t model_part, uint32_t model_parts,
                                 const char *output, const hmmjit_search_options *options,
                                 const hmmjit_callbacks *callbacks, hmmjit_part_info *info,
                                 hmmjit_error **error);
/* The results of the whole search, from the files of all its parts in any order. Their reports
 * equal, byte for byte, those of a search without parts; hmmjit_results_get_options gives the
 * options for them. With `callbacks->result`, holds one model at a time; calls no other callback.
 * HMMJIT_INPUT if a part is missing, damaged or of another search. */
int32_t hmmjit_merge_parts(const char *const *files, size_t count,
                           const hmmjit_callbacks *callbacks, hmmjit_results **out,
                           hmmjit_error **error);
/* Writes adjacent parts as one part, with the content of a search of that part. `info` may be
 * NULL. */
int32_t hmmjit_join_parts(const char *const *files, size_t count, const char *output,
                          hmmjit_part_info *info, hmmjit_error **error);
/* Describes a part. `settings` (may be NULL) receives lines "name: value", which must be equal in
 * all parts of a search. */
int32_t hmmjit_part_get_info(const char *file, hmmjit_part_info *info, hmmjit_text **settings,
                             hmmjit_error **error);
/* The options of its search, as hmmjit_results_get_options returns them. */
int32_t hmmjit_part_get_options(const char *file, hmmjit_search_options *options,
                                hmmjit_error **error);
/* Checks every byte of a part: HMMJIT_INPUT at the first damage. */
int32_t hmmjit_part_verify(const char *file, hmmjit_error **error);
/* The missing parts as a list of numbers from 1, "3,17,40-42"; "" if the files hold all parts. */
int32_t hmmjit_parts_missing(const char *const *files, size_t count, hmmjit_text **out,
                             hmmjit_error **error);

/* ---- models from sequences and alignments ------------------------------------------------------- */

/* Match columns: those with residues in enough rows (--fast), or marked by the RF annotation (--hand). */
enum { HMMJIT_COLUMNS_OCCUPIED = 0, HMMJIT_COLUMNS_REFERENCE = 1 };
enum {
  HMMJIT_WEIGHTS_POSITION = 0, /* --wpb: Henikoff & Henikoff 1994 */
  HMMJIT_WEIGHTS_TREE = 1,     /* --wgsc: Gerstein, Sonnhammer & Chothia 1994 */
  HMMJIT_WEIGHTS_CLUSTERS = 2, /* --wblosum: Henikoff & Henikoff 1992 */
  HMMJIT_WEIGHTS_NONE = 3,     /* --wnone */
  HMMJIT_WEIGHTS_GIVEN = 4     /* --wgiven: those of the alignment */
};
enum {
  HMMJIT_EFFECTIVE_ENTROPY = 0,       /* --eent: the number that gives a mean relative entropy */
  HMMJIT_EFFECTIVE_ENTROPY_POWER = 1, /* --eentexp: the same, by a power of the counts */
  HMMJIT_EFFECTIVE_CLUSTERS = 2,      /* --eclust: single-linkage clusters */
  HMMJIT_EFFECTIVE_ROWS = 3,          /* --enone */
  HMMJIT_EFFECTIVE_SET = 4            /* --eset */
};
/* Dirichlet mixtures (Sjoelander et al. 1996), frequencies (--pnone), or --plaplace. */
enum { HMMJIT_PRIOR_MIXTURE = 0, HMMJIT_PRIOR_NONE = 1, HMMJIT_PRIOR_LAPLACE = 2 };

typedef struct hmmjit_build_options {
  size_t size;
  const char *matrix;      /* substitution matrix of single sequences; default NULL: BLOSUM62, or DNA1 */
  const char *matrix_file; /* a file that replaces it; default NULL: none */
  double gap_open;         /* probability of opening a gap (--popen); default NaN: 0.02 (DNA 0.03125), or counted */
  double gap_extend;       /* probability of extending a gap (--pextend); default NaN: 0.4 (DNA 0.75), or counted */
  int32_t single_rows_by_matrix; /* take alignments of one row as one sequence (--singlemx); default 0 */
  int32_t columns;               /* HMMJIT_COLUMNS_...: which columns become match states; default 0 */
  double least_occupied;         /* weighted fraction of rows in a match column (--symfrac); default 0.5 */
  double fragment;   /* rows of at most this fraction of columns are fragments (--fragthresh); default 0.5 */
  int32_t weights;   /* HMMJIT_WEIGHTS_...: relative weights of rows; default 0 */
  int32_t effective; /* HMMJIT_EFFECTIVE_...: how many sequences the rows count as; default 0 */
  double weight_identity;    /* of HMMJIT_WEIGHTS_CLUSTERS (--wid); default 0.62 */
  double effective_number;   /* of HMMJIT_EFFECTIVE_SET (--eset); default 0 */
  double relative_entropy;   /* bits per position (--ere); default NaN: 0.59, or 0.62 for nucleotides */
  double total_entropy;      /* bits (--esigma); default 45 */
  double effective_identity; /* of HMMJIT_EFFECTIVE_CLUSTERS (--eid); default 0.62 */
  int32_t prior;             /* HMMJIT_PRIOR_...; default 0 */
  int32_t most_insertions;   /* bound on the length of insertions (--maxinsertlen), 0: none; default 0 */
  int32_t msv_length;      /* residues of simulated targets for MSV (--EmL); default 200 */
  int32_t msv_targets;     /* number of simulated targets for MSV (--EmN); default 200 */
  int32_t viterbi_length;  /* residues of simulated targets for Viterbi (--EvL); default 200 */
  int32_t viterbi_targets; /* number of simulated targets for Viterbi (--EvN); default 200 */
  int32_t forward_length;  /* residues of simulated targets for Forward (--EfL); default 100 */
  int32_t forward_targets; /* number of simulated targets for Forward (--EfN); default 200 */
  double tail_mass;        /* fitted tail of the Forward scores (--Eft); default 0.04 */
  uint32_t seed;           /* of random numbers, 0: an arbitrary one; default 42 */
  int32_t threads;         /* of many models at once, 0: all available cores; default 0 */
  int32_t alphabet;        /* HMMJIT_AMINO, ...; default -1: that of targets in memory, guessed for alignments */
  int32_t window_length;   /* nucleotides: the longest hit expected (--w_length), 0: by window_beta; default 0 */
  double window_beta;      /* nucleotides: tail mass beyond that length (--w_beta); default 1e-7 */
  const hmmjit_cancellation *cancellation; /* checked before each model; default NULL: none */
} hmmjit_build_options;

/* Sets HMMER's defaults; set `size` first. */
int32_t hmmjit_build_options_init(hmmjit_build_options *options, hmmjit_error **error);
/* Builds a model from every sequence with residues, in order, as phmmer does, or nhmmer for
 * nucleotides. Reports show the sequences' names. `options` may be NULL. */
int32_t hmmjit_build_models(const hmmjit_targets *sequences, const hmmjit_build_options *options,
                            hmmjit_models **out, hmmjit_error **error);
/* Builds a model from each alignment, as hmmbuild does, of a file or of its content in memory;
 * messages use `name` as path. `format`: NULL, or a name of hmmbuild's --informat. */
int32_t hmmjit_build_from_alignments(const char *path, const char *format,
                                     const hmmjit_build_options *options, hmmjit_models **out,
                                     hmmjit_error **error);
int32_t hmmjit_build_from_alignment_memory(const void *bytes, size_t size, const char *format,
                                           const char *name, const hmmjit_build_options *options,
                                           hmmjit_models **out, hmmjit_error **error);

/* ---- searches in rounds ------------------------------------------------------------------------- */

typedef struct hmmjit_iteration hmmjit_iteration;

typedef struct hmmjit_iteration_options {
  size_t size;
  int32_t rounds;           /* at most; default 5 */
  int32_t prefer_accession; /* main report: show accessions in place of names; default 0 */
  int32_t alignments;       /* main report: show the alignments of domains; default 1 */
  int32_t text_width;       /* main report: columns, 120 at least, 0: unlimited; default 120 */
  int32_t a3m;              /* reports of HMMJIT_REPORT_A3M are wanted; default 0 */
  int32_t reserved;
  const hmmjit_search_options *search; /* default NULL: jackhmmer's, whose incE and incdomE are 0.001 */
  const hmmjit_build_options *build;   /* default NULL: HMMER's */
  const char *alignment_file; /* the caller will write HMMJIT_REPORT_ALIGNMENT to it; default NULL: none */
} hmmjit_iteration_options;

/* Sets jackhmmer's defaults; set `size` first. */
int32_t hmmjit_iteration_options_init(hmmjit_iteration_options *options, hmmjit_error **error);
/* `queries`: protein sequences; skips sequences without residues. `options` may be NULL. */
int32_t hmmjit_iteration_create(const hmmjit_targets *queries, const hmmjit_targets *targets,
                                const hmmjit_iteration_options *options, hmmjit_iteration **out,
                                hmmjit_error **error);
/* The same with protein models as queries: the first round searches with the model itself, and
 * alignments have no row for the query. */
int32_t hmmjit_iteration_from_models(const hmmjit_models *queries, const hmmjit_targets *targets,
                                     const hmmjit_iteration_options *options,
                                     hmmjit_iteration **out, hmmjit_error **error);
/* Number of queries. */
size_t hmmjit_iteration_queries(const hmmjit_iteration *iteration);
/* 1 if no query has a further round. */
int32_t hmmjit_iteration_done(const hmmjit_iteration *iteration);

/* One round of one query. */
typedef struct hmmjit_round hmmjit_round;
typedef struct hmmjit_round_info {
  size_t size;
  size_t query;      /* index among the queries */
  int32_t number;    /* from 1 */
  int32_t converged; /* nothing new was found */
  int32_t last;      /* there is no further round */
  int32_t reserved;
  uint64_t included;    /* rows of the alignment */
  uint64_t new_targets; /* included now and not in the round before */
} hmmjit_round_info;
typedef struct hmmjit_rounds hmmjit_rounds;

/* Runs the next round of every unfinished query, concurrently; returns no rounds once done. Does
 * not call `callbacks->result`; `callbacks` may be NULL. */
int32_t hmmjit_iteration_next(hmmjit_iteration *iteration, const hmmjit_callbacks *callbacks,
                              hmmjit_rounds **out, hmmjit_error **error);
/* Number of rounds: one per query that had a further one. */
size_t hmmjit_rounds_count(const hmmjit_rounds *rounds);
/* A round, in query order; lives as long as `rounds`. NULL beyond the end. */
const hmmjit_round *hmmjit_rounds_get(const hmmjit_rounds *rounds, size_t index);
void hmmjit_rounds_free(hmmjit_rounds *rounds);
/* Describes the round. */
int32_t hmmjit_round_get_info(const hmmjit_round *round, hmmjit_round_info *info,
                              hmmjit_error **error);
/* The hits of the round's model; live as long as the rounds. */
const hmmjit_result *hmmjit_round_result(const hmmjit_round *round);
/* The model of this round. */
int32_t hmmjit_round_model(const hmmjit_round *round, hmmjit_models **out, hmmjit_error **error);
/* Included domains, aligned with the query, in Stockholm format; "" if alignments were not kept. */
const char *hmmjit_round_alignment(const hmmjit_round *round);
/* Adds a query whose rounds are done: all rounds to the main report, the last to other kinds. */
int32_t hmmjit_report_add_iteration(hmmjit_report *report, const hmmjit_iteration *iteration,
                                    size_t query, hmmjit_error **error);
void hmmjit_iteration_free(hmmjit_iteration *iteration);

/* ---- devices ----------------------------------------------------------------------------------- */

typedef struct hmmjit_device {
  size_t size;
  char name[128];                    /* "NVIDIA H200" */
  int32_t ordinal;                   /* on this machine; -1: a device of the built-in table */
  int32_t major;                     /* compute capability */
  int32_t minor;                     /* compute capability, second number */
  int32_t sm_count;                  /* multiprocessors */
  int32_t clock_khz;                 /* boost clock */
  int32_t max_threads_per_sm;        /* resident threads of a multiprocessor */
  int32_t max_blocks_per_sm;         /* resident blocks of a multiprocessor */
  int32_t registers_per_sm;          /* of 32 bits */
  int32_t max_registers_per_thread;  /* of 32 bits */
  int32_t shared_per_sm;             /* bytes of shared memory of a multiprocessor */
  int32_t shared_per_block;          /* bytes of shared memory a block may have (opt-in) */
  int32_t shared_reserved_per_block; /* bytes that the system takes from each block */
  int64_t memory_bytes;              /* of device memory */
  int64_t l2_bytes;                  /* of the L2 cache */
  double memory_bandwidth;           /* bytes a second */
} hmmjit_device;

/* Number of GPUs of this machine. `note` (may be NULL) receives the state of the driver. */
int32_t hmmjit_device_count(int32_t *count, hmmjit_text **note, hmmjit_error **error);
/* GPU number `ordinal` of this machine. */
int32_t hmmjit_device_get(int32_t ordinal, hmmjit_device *device, hmmjit_error **error);
/* A device of the built-in table: "H200", "sm_90", ... */
int32_t hmmjit_device_find(const char *name, hmmjit_device *device, hmmjit_error **error);
/* Version of the run-time compiler; without one, 0 and a note (`note` may be NULL). */
int32_t hmmjit_compiler_version(int32_t *major, int32_t *minor, hmmjit_text **note,
                                hmmjit_error **error);

/* ---- engine: own kernels ----------------------------------------------------------------------- */

typedef struct hmmjit_constant {
  const char *name; /* "kTile", or "width" of a problem */
  int64_t value;    /* of a constant of the kernel, or of a parameter of the problem */
} hmmjit_constant;

typedef struct hmmjit_template {
  const char *path, *text; /* "mine/kernel.cu", CUDA C++ */
} hmmjit_template;

/* The part of a computation that plans depend on. */
typedef struct hmmjit_problem {
  size_t size;
  const char *family;                /* as of the variants that solve it */
  const hmmjit_constant *parameters; /* named numbers, such as the width of an image */
  size_t parameter_count;            /* elements of `parameters` */
} hmmjit_problem;

/* One way to run a variant. */
typedef struct hmmjit_configuration {
  size_t size;
  const hmmjit_constant *constants; /* of the template, which must use all of them */
  size_t constant_count;            /* elements of `constants` */
  int32_t threads_x, threads_y, threads_z; /* of one block */
  int32_t registers;                       /* per thread, a ceiling; more is refused */
  int32_t local_bytes;                     /* of a thread, by design; more is a spill */
  int32_t reserved;
  int64_t dynamic_shared_bytes;  /* of one block */
  double items_per_clock_per_sm; /* ranks the configurations */
  const char *binding_resource;  /* "memory bandwidth", "issue", ...: for the text of plans */
} hmmjit_configuration;

/* The configurations that a catalogue entry offers for a problem on a device. */
typedef struct hmmjit_offer hmmjit_offer;
/* add: adds a configuration, the author's favourite first. reject: tells why the entry does not
 * accept the problem. */
int32_t hmmjit_offer_add(hmmjit_offer *offer, const hmmjit_configuration *configuration,
                         hmmjit_error **error);
void hmmjit_offer_reject(hmmjit_offer *offer, const char *reason);

/* A catalogue entry. */
typedef struct hmmjit_variant {
  size_t size;
  const char *name;                   /* unique in its engine: "mrf_tile" */
  const char *family;                 /* of problems; not a stage of the profile search */
  const char *template_file;          /* path of a template: "mrf/tile.cu" */
  const char *entry_name;             /* its extern "C" kernel */
  const char *const *compile_options; /* beyond the common ones: "--fmad=false" */
  size_t compile_option_count;        /* elements of `compile_options` */
  int32_t by_name_only; /* chosen only if forced, or without alternative */
  int32_t reserved;
  void *context; /* given to `configurations` */
  /* Adds configurations to the offer, or rejects the problem. Pure; called from any thread. */
  void (*configurations)(void *context, const hmmjit_problem *problem, const hmmjit_device *device,
                         hmmjit_offer *offer);
} hmmjit_variant;

typedef struct hmmjit_engine_settings {
  size_t size;
  const hmmjit_template *templates; /* the host's own, in addition to hmmjit's */
  size_t template_count;            /* elements of `templates` */
  const hmmjit_variant *variants;   /* the host's own; all of the size of the first one's `size` */
  size_t variant_count;             /* elements of `variants` */
  const hmmjit_cache *cache;        /* NULL: the environment's */
  int32_t compile_threads;          /* concurrent compiles; 0: as many as there are cores, 12 at most */
  int32_t highest_compiler_major;   /* newest version of the compiler to accept; 0: the driver's, or any */
} hmmjit_engine_settings;

typedef struct hmmjit_engine hmmjit_engine;
typedef struct hmmjit_plan hmmjit_plan;
typedef struct hmmjit_image hmmjit_image;

/* `settings` may be NULL. Without a compiler the engine plans, renders, and serves kernels from the
 * cache. HMMJIT_USAGE for an incomplete variant, and for a name or path that is already in use. */
int32_t hmmjit_engine_create(const hmmjit_engine_settings *settings, hmmjit_engine **out,
                             hmmjit_error **error);
void hmmjit_engine_free(hmmjit_engine *engine);
enum {
  HMMJIT_POLICY_DEFAULT = 0,   /* highest predicted rate */
  HMMJIT_POLICY_CUDAMPFPP = 1  /* stages of the search only: equations 4 and 5 of CUDAMPF++ */
};

typedef struct hmmjit_plan_options {
  size_t size;
  const char *variant;    /* a name to force; NULL: the policy chooses */
  int32_t policy;         /* HMMJIT_POLICY_...: how candidates are ranked */
  int32_t exact_length;   /* stages: for the length itself, not its class */
  int32_t alphabet_codes; /* stages: residue codes; 0: those of proteins, 29 */
  int32_t reserved;
} hmmjit_plan_options;

/* Needs no GPU and no compiler. `options` may be NULL. HMMJIT_COMPILE, with every reason, if no
 * variant accepts the problem. */
int32_t hmmjit_engine_plan(const hmmjit_engine *engine, const hmmjit_problem *problem,
                           const hmmjit_device *device, const hmmjit_plan_options *options,
                           hmmjit_plan **out, hmmjit_error **error);
/* A stage of the profile search: "ssv", "msv", "bias", "viterbi", "forward", "gate", "parser",
   "ensemble", "envelope". */
int32_t hmmjit_engine_plan_stage(const hmmjit_engine *engine, const char *stage,
                                 int32_t model_length, const hmmjit_device *device,
                                 const hmmjit_plan_options *options, hmmjit_plan **out,
                                 hmmjit_error **error);
/* The CUDA source of the plan's choice. */
int32_t hmmjit_engine_render(const hmmjit_engine *engine, const hmmjit_plan *plan,
                             hmmjit_text **out, hmmjit_error **error);
/* The image of the plan's choice, or of the first fallback that keeps its promises, from memory,
 * disk or the compiler. Waits. */
int32_t hmmjit_engine_compile(const hmmjit_engine *engine, const hmmjit_plan *plan,
                              hmmjit_image **out, hmmjit_error **error);
/* Ends all compiles with HMMJIT_INTERRUPTED; the engine compiles no more. Does not wait. */
void hmmjit_engine_cancel(const hmmjit_engine *engine);

/* text: lines for people. json: one line for programs. variant: the name of the chosen variant. */
const char *hmmjit_plan_text(const hmmjit_plan *plan);
const char *hmmjit_plan_json(const hmmjit_plan *plan);
const char *hmmjit_plan_variant(const hmmjit_plan *plan);
/* Value of a constant of the chosen candidate. */
int32_t hmmjit_plan_constant(const hmmjit_plan *plan, const char *name, int64_t *value,
                             hmmjit_error **error);
void hmmjit_plan_free(hmmjit_plan *plan);

/* A compiled kernel. Numbers are -1 if unknown (PTX before it is loaded). */
typedef struct hmmjit_image_info {
  size_t size;
  const char *name;            /* "host.mrf_tile.sm_90.1f0c54e2a9b3d871" */
  const char *variant;         /* of the plan's choice, or of the fallback that took its place */
  const char *architecture;    /* "sm_90", or "compute_120" for PTX */
  const char *origin;          /* "compiled", or the layer of the cache: "memory", "user", "system" */
  const char *log;             /* the compiler's */
  const void *bytes;           /* cubin (ELF), or PTX text for a device newer than the compiler */
  size_t byte_count;           /* of `bytes`, after which a NUL stands */
  int32_t is_ptx;              /* `bytes` are PTX */
  int32_t registers;           /* of a thread */
  int32_t local_bytes;         /* of a thread */
  int32_t spill_bytes;         /* of a thread */
  int32_t static_shared_bytes; /* of a block */
  int32_t parameter_bytes;     /* of the kernel's parameter struct */
  double seconds;              /* rendering and compiling, or reading; wall time */
} hmmjit_image_info;

/* Describes the image; texts and bytes live as long as `image`. */
int32_t hmmjit_image_get_info(const hmmjit_image *image, hmmjit_image_info *info,
                              hmmjit_error **error);
void hmmjit_image_free(hmmjit_image *image);

/* ---- engine: launches -------------------------------------------------------------------------- */

typedef struct hmmjit_gpu hmmjit_gpu;
typedef struct hmmjit_stream hmmjit_stream;
typedef struct hmmjit_event hmmjit_event;
typedef struct hmmjit_buffer hmmjit_buffer;
typedef struct hmmjit_kernel hmmjit_kernel;

/* The GPU with its primary context, which the CUDA runtime shares. */
int32_t hmmjit_gpu_open(int32_t ordinal, hmmjit_gpu **out, hmmjit_error **error);
/* As the driver describes it. */
int32_t hmmjit_gpu_get_device(const hmmjit_gpu *gpu, hmmjit_device *device, hmmjit_error **error);
/* Free and total memory of the device, for all processes, now; either pointer may be NULL. */
int32_t hmmjit_gpu_memory(const hmmjit_gpu *gpu, uint64_t *free_bytes, uint64_t *total_bytes,
                          hmmjit_error **error);
/* Waits for everything queued on the device; fails with the first error of earlier launches. */
int32_t hmmjit_gpu_synchronize(const hmmjit_gpu *gpu, hmmjit_error **error);
void hmmjit_gpu_free(hmmjit_gpu *gpu);

/* An ordered queue of copies, fills and launches. */
int32_t hmmjit_stream_create(const hmmjit_gpu *gpu, hmmjit_stream **out, hmmjit_error **error);
/* Waits; fails with the first error of queued work. */
int32_t hmmjit_stream_synchronize(const hmmjit_stream *stream, hmmjit_error **error);
/* Wraps a CUstream (cudaStream_t) of the primary context: launches are then in order with the
 * host's own work, or captured into its graph. The host still owns the stream, which must outlive
 * the handle and all work queued through it. NULL: the legacy default stream. */
int32_t hmmjit_stream_from_native(const hmmjit_gpu *gpu, void *native, hmmjit_stream **out,
                                  hmmjit_error **error);
/* The CUstream, for calls of CUDA; valid as long as the handle. */
void *hmmjit_stream_native(const hmmjit_stream *stream);
/* `finished`: 1 if all queued work is done, otherwise 0. Fails as synchronize does. */
int32_t hmmjit_stream_finished(const hmmjit_stream *stream, int32_t *finished,
                               hmmjit_error **error);
/* Does not wait. */
void hmmjit_stream_free(hmmjit_stream *stream);

/* A point in a stream. `timing`: 1 to measure with hmmjit_event_milliseconds. */
int32_t hmmjit_event_create(const hmmjit_gpu *gpu, int32_t timing, hmmjit_event **out,
                            hmmjit_error **error);
/* Moves the event to the point after all work queued so far. */
int32_t hmmjit_event_record(hmmjit_event *event, const hmmjit_stream *stream, hmmjit_error **error);
/* As for streams. */
int32_t hmmjit_event_synchronize(const hmmjit_event *event, hmmjit_error **error);
int32_t hmmjit_event_finished(const hmmjit_event *event, int32_t *finished, hmmjit_error **error);
/* Later work of `stream` waits for the event. */
int32_t hmmjit_event_wait_in(const hmmjit_event *event, const hmmjit_stream *stream,
                             hmmjit_error **error);
/* Time between two recorded, finished events with timing; an error for others. */
int32_t hmmjit_event_milliseconds(const hmmjit_event *start, const hmmjit_event *end,
                                  float *milliseconds, hmmjit_error **error);
/* The CUevent (cudaEvent_t); valid as long as the handle. */
void *hmmjit_event_native(const hmmjit_event *event);
void hmmjit_event_free(hmmjit_event *event);

/* Device memory; its contents are undefined until written. */
int32_t hmmjit_buffer_create(const hmmjit_gpu *gpu, size_t bytes, hmmjit_buffer **out,
                             hmmjit_error **error);
/* For launch parameters, where the kernel has a pointer. */
uint64_t hmmjit_buffer_address(const hmmjit_buffer *buffer);
/* Queued copies; HMMJIT_USAGE for a range outside the buffer. After upload returns, the memory at
 * `from` may be reused or freed, unless it is page-locked (by another library): then only after the
 * copy. The memory at `to` must live, and must not be read, until hmmjit_stream_synchronize,
 * hmmjit_stream_finished or a later event shows that the copy is done. */
int32_t hmmjit_buffer_upload(hmmjit_buffer *buffer, const hmmjit_stream *stream, const void *from,
                             size_t bytes, size_t offset, hmmjit_error **error);
int32_t hmmjit_buffer_download(const hmmjit_buffer *buffer, const hmmjit_stream *stream, void *to,
                               size_t bytes, size_t offset, hmmjit_error **error);
int32_t hmmjit_buffer_fill(hmmjit_buffer *buffer, const hmmjit_stream *stream, uint8_t value,
                           size_t bytes, size_t offset, hmmjit_error **error);
/* Waits for work that uses the buffer. */
void hmmjit_buffer_free(hmmjit_buffer *buffer);

/* Compiles, and loads the image on `gpu`. */
int32_t hmmjit_engine_load(const hmmjit_engine *engine, const hmmjit_plan *plan,
                           const hmmjit_gpu *gpu, hmmjit_kernel **out, hmmjit_error **error);
/* The CUkernel (cudaKernel_t), which CUDA also accepts as a CUfunction; valid as long as the handle. */
void *hmmjit_kernel_native(const hmmjit_kernel *kernel);
/* Multiprocessors times resident blocks: a grid that fills the device once. */
uint32_t hmmjit_kernel_resident_blocks(const hmmjit_kernel *kernel);
/* Queues one launch with the candidate's block; `parameters` is the kernel's one struct, copied at
 * once. */
int32_t hmmjit_kernel_launch(const hmmjit_kernel *kernel, const hmmjit_stream *stream,
                             uint32_t blocks_x, uint32_t blocks_y, uint32_t blocks_z,
                             const void *parameters, size_t parameter_bytes, hmmjit_error **error);
void hmmjit_kernel_free(hmmjit_kernel *kernel);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#ifdef HMMJIT_BUILDING_LIBRARY
#undef hmmjit_device
#endif

#endif
