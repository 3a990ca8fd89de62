// The C interface: handles and sized structs over the C++ interface. No exception crosses it.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "hmmjit/hmmjit.h"
#include "hmmjit/hmmjit.hpp"

using hmmjit::Error;
using hmmjit::ErrorCode;

struct hmmjit_error {
  Error value;
};
struct hmmjit_text {
  std::string value;
};
struct hmmjit_models {
  hmmjit::Models value;
};
struct hmmjit_targets {
  hmmjit::Targets value;
};
struct hmmjit_cache {
  hmmjit::Cache value;
};
struct hmmjit_cancellation {
  hmmjit::Cancellation value;
};
struct hmmjit_result {
  hmmjit::ModelResult value;
};
struct hmmjit_results {
  hmmjit::SearchStatistics statistics;
  std::vector<hmmjit_result> models;
};
struct hmmjit_report {
  hmmjit::Report value;
};
struct hmmjit_offer {
  std::vector<hmmjit::Configuration> configurations;
  std::string rejection;
  bool rejected = false;
};
struct hmmjit_engine {
  hmmjit::Engine value;
};
struct hmmjit_plan {
  hmmjit::Plan value;
};
struct hmmjit_image {
  hmmjit::KernelImage value;
  std::string text;  // the image, followed by a NUL
};
struct hmmjit_gpu {
  hmmjit::Gpu value;
};
struct hmmjit_stream {
  hmmjit::Stream value;
};
struct hmmjit_event {
  hmmjit::Event value;
};
struct hmmjit_buffer {
  hmmjit::Buffer value;
};
struct hmmjit_kernel {
  hmmjit::Kernel value;
};

namespace {

[[noreturn]] void misused(const std::string& what) { throw Error(ErrorCode::kUsage, what); }

template <typename T>
T& required(T* pointer, const char* name) {
  if (pointer == nullptr) misused(std::string(name) + " must not be NULL");
  return *pointer;
}

std::string text_of(const char* text) { return text != nullptr ? text : ""; }

/// Runs `work`; what it throws becomes a status and an error object.
template <typename Work>
std::int32_t run(hmmjit_error** error, Work&& work) noexcept {
  const auto failed = [error](const Error& e) {
    if (error != nullptr) *error = new (std::nothrow) hmmjit_error{e};
    return static_cast<std::int32_t>(e.code());
  };
  try {
    try {
      work();
      return HMMJIT_OK;
    } catch (const Error& e) {
      return failed(e);
    } catch (const std::bad_alloc&) {
      return failed(Error(ErrorCode::kResources, "out of memory"));
    } catch (const std::exception& e) {
      return failed(Error(ErrorCode::kInternal, e.what()));
    } catch (...) {
      return failed(Error(ErrorCode::kInternal, "an unknown exception"));
    }
  } catch (...) {  // no memory for the error itself
    if (error != nullptr) *error = nullptr;
    return HMMJIT_RESOURCES;
  }
}

/// A struct ends where no member is cut, and none will ever be as large as what a member that was
/// not set may hold.
void check_size(std::size_t size) {
  constexpr std::size_t kLargestStruct = 4096;
  if (size < sizeof(std::size_t)) misused("a struct whose size is not set");
  if (size > kLargestStruct || size % sizeof(std::size_t) != 0)
    misused("a struct of " + std::to_string(size) + " bytes: set its size to sizeof");
}

/// What the caller's struct says, members unknown to it as in `defaults`.
template <typename T>
T read(const T* given, T defaults = {}) {
  if (given == nullptr) return defaults;
  check_size(given->size);
  std::memcpy(&defaults, given, std::min(given->size, sizeof(T)));
  if constexpr (requires { defaults.reserved; }) {
    if (defaults.reserved != 0) misused("a reserved member is not zero");
  }
  // Of a later version: its further members must not be used.
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(T); i < given->size; ++i) {
    if (bytes[i] != 0) misused("a member that this version of the library does not know is set");
  }
  return defaults;
}

/// Number `index` of an array whose element size is that of its first element.
template <typename T>
T* element(T* array, std::size_t index, std::size_t size) {
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(array) + index * size);
}

template <typename T>
void write(T* out, T full, std::size_t size) {
  full.size = size;
  std::memcpy(static_cast<void*>(out), &full, std::min(size, sizeof(T)));
  if (size > sizeof(T)) std::memset(reinterpret_cast<char*>(out) + sizeof(T), 0, size - sizeof(T));
}
template <typename T>
void write(T* out, const T& full) {
  check_size(required(out, "the struct to fill").size);
  write(out, full, out->size);
}

template <typename Handle, typename... Parts>
void give(Handle** out, Parts&&... parts) {
  required(out, "the handle to fill");
  *out = new Handle{std::forward<Parts>(parts)...};
}

template <typename Enum>
Enum to_enum(std::int32_t number, std::int32_t last, const char* what) {
  if (number < 0 || number > last)
    misused("no " + std::string(what) + " has the number " + std::to_string(number));
  return static_cast<Enum>(number);
}
hmmjit::Alphabet to_alphabet(std::int32_t number) {
  return to_enum<hmmjit::Alphabet>(number, HMMJIT_RNA, "alphabet");
}

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::optional<double> given(double value) {
  if (std::isnan(value)) return std::nullopt;
  return value;
}
std::optional<double> positive(double value) {
  if (value == 0) return std::nullopt;
  return value;
}

hmmjit_search_options default_options() {
  const hmmjit::SearchOptions d;
  hmmjit_search_options o{};
  o.size = sizeof o;
  o.E = d.report.e_value;
  o.domE = d.report_domain.e_value;
  o.incE = d.include.e_value;
  o.incdomE = d.include_domain.e_value;
  o.T = o.domT = o.incT = o.incdomT = kNone;
  o.F1 = d.F1;
  o.F2 = d.F2;
  o.F3 = d.F3;
  o.bias_filter = d.bias_filter;
  o.null2 = d.null2;
  o.seed = d.seed;
  o.keep_alignments = d.keep_alignments;
  o.verify = d.verify;
  o.target_count = -1;
  return o;
}

hmmjit::SearchOptions to_options(const hmmjit_search_options* given_options) {
  const hmmjit_search_options o = read(given_options, default_options());
  hmmjit::SearchOptions out;
  out.report = {o.E, given(o.T)};
  out.report_domain = {o.domE, given(o.domT)};
  out.include = {o.incE, given(o.incT)};
  out.include_domain = {o.incdomE, given(o.incdomT)};
  out.cutoffs = to_enum<hmmjit::ModelCutoffs>(o.cutoffs, HMMJIT_CUT_TC, "kind of cutoffs");
  out.max_sensitivity = o.max_sensitivity != 0;
  out.Z = positive(o.Z);
  out.domZ = positive(o.domZ);
  out.F1 = o.F1;
  out.F2 = o.F2;
  out.F3 = o.F3;
  out.bias_filter = o.bias_filter != 0;
  out.null2 = o.null2 != 0;
  out.seed = o.seed;
  out.keep_alignments = o.keep_alignments != 0;
  out.threads = o.threads;
  out.device = to_enum<hmmjit::DeviceUse>(o.device, HMMJIT_DEVICE_GPU, "kind of device");
  out.memory = o.memory;
  out.vram = o.vram;
  if (o.gpu_count > 0) {
    const std::int32_t* gpus = &required(o.gpus, "gpus");
    out.gpus.assign(gpus, gpus + o.gpu_count);
  }
  out.verify = o.verify;
  if (o.cache != nullptr) out.cache = o.cache->value;
  out.first_target = text_of(o.first_target);
  if (o.target_count < -1) misused("target_count takes a number, or -1 for all");
  if (o.target_count >= 0) out.target_count = static_cast<std::uint64_t>(o.target_count);
  return out;
}

hmmjit::ReportOptions to_options(const hmmjit_report_options* given_options,
                                 hmmjit::SearchOptions& search) {
  hmmjit_report_options defaults{};
  defaults.alignments = 1;
  defaults.text_width = 120;
  const hmmjit_report_options o = read(given_options, defaults);
  search = to_options(o.search);
  hmmjit::ReportOptions out(search);
  out.prefer_accession = o.prefer_accession != 0;
  out.alignments = out.alignments && o.alignments != 0;
  out.text_width = o.text_width;
  out.page_title = text_of(o.page_title);
  out.page_targets = o.page_targets;
  return out;
}

hmmjit::RunInfo to_run(const hmmjit_run_info* given_run) {
  const hmmjit_run_info r = read(given_run);
  hmmjit::RunInfo out;
  if (r.program != nullptr) out.program = r.program;
  out.version = text_of(r.version);
  out.query_file = text_of(r.query_file);
  out.target_file = text_of(r.target_file);
  out.settings = text_of(r.settings);
  out.folder = text_of(r.folder);
  out.date = text_of(r.date);
  return out;
}

hmmjit_filter_counts to_c(const hmmjit::FilterCounts& c) {
  return {c.targets, c.residues, c.msv, c.bias, c.viterbi, c.forward};
}

hmmjit_device to_c(const hmmjit::Device& d) {
  hmmjit_device out{};
  std::memcpy(out.name, d.name.data(), std::min(d.name.size(), sizeof out.name - 1));
  out.ordinal = d.ordinal;
  out.major = d.major;
  out.minor = d.minor;
  out.sm_count = d.sm_count;
  out.clock_khz = d.clock_khz;
  out.max_threads_per_sm = d.max_threads_per_sm;
  out.max_blocks_per_sm = d.max_blocks_per_sm;
  out.registers_per_sm = d.registers_per_sm;
  out.max_registers_per_thread = d.max_registers_per_thread;
  out.shared_per_sm = d.shared_per_sm;
  out.shared_per_block = d.shared_per_block;
  out.shared_reserved_per_block = d.shared_reserved_per_block;
  out.memory_bytes = d.memory_bytes;
  out.l2_bytes = d.l2_bytes;
  out.memory_bandwidth = d.memory_bandwidth;
  return out;
}

hmmjit::Device to_cpp(const hmmjit_device* given_device) {
  const hmmjit_device d = read(&required(given_device, "device"));
  hmmjit::Device out;
  out.name.assign(d.name, ::strnlen(d.name, sizeof d.name));
  out.ordinal = d.ordinal;
  out.major = d.major;
  out.minor = d.minor;
  out.sm_count = d.sm_count;
  out.clock_khz = d.clock_khz;
  out.max_threads_per_sm = d.max_threads_per_sm;
  out.max_blocks_per_sm = d.max_blocks_per_sm;
  out.registers_per_sm = d.registers_per_sm;
  out.max_registers_per_thread = d.max_registers_per_thread;
  out.shared_per_sm = d.shared_per_sm;
  out.shared_per_block = d.shared_per_block;
  out.shared_reserved_per_block = d.shared_reserved_per_block;
  out.memory_bytes = d.memory_bytes;
  out.l2_bytes = d.l2_bytes;
  out.memory_bandwidth = d.memory_bandwidth;
  return out;
}

hmmjit::Constants to_constants(const hmmjit_constant* constants, std::size_t count) {
  hmmjit::Constants out;
  for (std::size_t i = 0; i < count; ++i) {
    const hmmjit_constant& c = (&required(constants, "constants"))[i];
    out.push_back({text_of(c.name), c.value});
  }
  return out;
}

hmmjit::Problem to_problem(const hmmjit_problem* given_problem) {
  const hmmjit_problem p = read(&required(given_problem, "problem"));
  return {text_of(p.family), to_constants(p.parameters, p.parameter_count)};
}

hmmjit::KernelVariant to_variant(const hmmjit_variant* given_variant) {
  const hmmjit_variant v = read(given_variant);
  hmmjit::KernelVariant out;
  out.name = text_of(v.name);
  out.family = text_of(v.family);
  out.template_file = text_of(v.template_file);
  out.entry_name = text_of(v.entry_name);
  out.competes = v.by_name_only == 0;
  for (std::size_t i = 0; i < v.compile_option_count; ++i)
    out.compile_options.push_back(text_of((&required(v.compile_options, "compile_options"))[i]));
  if (v.configurations == nullptr) return out;  // the engine refuses it
  // One call answers both questions of the C++ interface; it is pure, so asking twice is the same.
  const auto ask = [v](const hmmjit::Problem& problem, const hmmjit::Device& device) {
    std::vector<hmmjit_constant> parameters;
    for (const hmmjit::Constant& c : problem.parameters)
      parameters.push_back({c.name.c_str(), c.value});
    const hmmjit_problem p{sizeof p, problem.family.c_str(), parameters.data(), parameters.size()};
    hmmjit_device d = to_c(device);
    d.size = sizeof d;
    hmmjit_offer offer;
    v.configurations(v.context, &p, &d, &offer);
    return offer;
  };
  out.accepts = [ask](const hmmjit::Problem& problem, const hmmjit::Device& device) {
    hmmjit_offer offer = ask(problem, device);
    return hmmjit::Verdict{!offer.rejected, std::move(offer.rejection)};
  };
  out.configurations = [ask](const hmmjit::Problem& problem, const hmmjit::Device& device) {
    return ask(problem, device).configurations;
  };
  return out;
}

hmmjit::PlanOptions to_plan_options(const hmmjit_plan_options& o) {
  hmmjit::PlanOptions out;
  out.variant = text_of(o.variant);
  out.policy = to_enum<hmmjit::PlanPolicy>(o.policy, HMMJIT_POLICY_CUDAMPFPP, "policy");
  out.exact_length = o.exact_length != 0;
  return out;
}

/// Domains of all hits, which lie one behind the other.
std::span<const hmmjit::Domain> all_domains(const hmmjit::ModelResult& result) {
  const auto hits = result.hits();
  if (hits.empty()) return {};
  const hmmjit::Domain* first = hits.front().domains.data();
  return {first, hits.back().domains.data() + hits.back().domains.size()};
}

template <typename T>
void check_range(std::size_t first, std::size_t count, std::size_t all, T* out) {
  if (first > all || count > all - first)
    misused("a range beyond the " + std::to_string(all) + " there are");
  if (count > 0) check_size(required(out, "the array to fill").size);
}

const char* c_text(std::string_view text) { return text.data() != nullptr ? text.data() : ""; }

template <typename Work>
int32_t counted(const hmmjit_cache* cache, uint64_t* count, hmmjit_error** error, Work work) {
  return run(error, [&] {
    hmmjit::Cache handle = required(cache, "cache").value;  // shares the cache
    const uint64_t entries = work(handle);
    if (count != nullptr) *count = entries;
  });
}

}  // namespace

extern "C" {

// ---- status, errors, version ------------------------------------------------------------------

const char* hmmjit_status_name(int32_t status) {
  return status == HMMJIT_OK ? "ok" : hmmjit::error_code_name(static_cast<ErrorCode>(status));
}
int32_t hmmjit_error_status(const hmmjit_error* error) {
  return error != nullptr ? static_cast<int32_t>(error->value.code()) : HMMJIT_OK;
}
const char* hmmjit_error_text(const hmmjit_error* error) {
  return error != nullptr ? error->value.what() : "";
}
const char* hmmjit_error_message(const hmmjit_error* error) {
  return error != nullptr ? error->value.message().c_str() : "";
}
const char* hmmjit_error_where(const hmmjit_error* error) {
  return error != nullptr ? error->value.where().c_str() : "";
}
const char* hmmjit_error_remedy(const hmmjit_error* error) {
  return error != nullptr ? error->value.remedy().c_str() : "";
}
void hmmjit_error_free(hmmjit_error* error) { delete error; }

int32_t hmmjit_version_number(void) {
  const hmmjit::Version v = hmmjit::version();
  return v.major * 10000 + v.minor * 100 + v.patch;
}
const char* hmmjit_version(void) { return hmmjit::version().text; }

const char* hmmjit_text_data(const hmmjit_text* text) {
  return text != nullptr ? text->value.c_str() : "";
}
size_t hmmjit_text_size(const hmmjit_text* text) {
  return text != nullptr ? text->value.size() : 0;
}
void hmmjit_text_free(hmmjit_text* text) { delete text; }

// ---- models -----------------------------------------------------------------------------------

int32_t hmmjit_models_create(hmmjit_models** out, hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Models()); });
}
int32_t hmmjit_models_from_file(const char* path, hmmjit_models** out, hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Models::from_file(&required(path, "path"))); });
}
int32_t hmmjit_models_load(const char* path, hmmjit_models** out, hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Models::load(&required(path, "path"))); });
}
int32_t hmmjit_models_from_memory(const void* bytes, size_t size, const char* name,
                                  hmmjit_models** out, hmmjit_error** error) {
  return run(error, [&] {
    const auto* data = static_cast<const char*>(bytes);
    if (size > 0) required(data, "bytes");
    give(out, hmmjit::Models::from_memory({data, size}, name != nullptr ? name : "memory"));
  });
}
int32_t hmmjit_models_add(hmmjit_models* models, const hmmjit_models* from, size_t index,
                          hmmjit_error** error) {
  return run(error,
             [&] { required(models, "models").value.add(required(from, "from").value[index]); });
}
size_t hmmjit_models_count(const hmmjit_models* models) {
  return models != nullptr ? models->value.size() : 0;
}
int32_t hmmjit_models_get(const hmmjit_models* models, size_t index, hmmjit_model_info* info,
                          hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::Model model = required(models, "models").value[index];
    hmmjit_model_info out{};
    out.name = model.name().c_str();
    out.accession = model.accession().c_str();
    out.description = model.description().c_str();
    out.consensus = model.consensus().c_str();
    out.length = model.length();
    out.alphabet = static_cast<int32_t>(model.alphabet());
    const auto cutoff = [](const std::optional<hmmjit::ScoreCutoff>& c, double& sequence,
                           double& domain) {
      sequence = c ? c->sequence : kNone;
      domain = c ? c->domain : kNone;
    };
    cutoff(model.gathering(), out.gathering, out.gathering_domain);
    cutoff(model.trusted(), out.trusted, out.trusted_domain);
    cutoff(model.noise(), out.noise, out.noise_domain);
    write(info, out);
  });
}
int32_t hmmjit_models_for_each(const hmmjit_models* models,
                               int32_t (*visit)(void* context, const hmmjit_models* one),
                               void* context, hmmjit_error** error) {
  return run(error, [&] {
    required(visit, "visit");
    const hmmjit::Models own_models = required(models, "models").value;  // `visit` may free them
    own_models.for_each([&](const hmmjit::Model& model) {
      hmmjit_models one;
      one.value.add(model);
      return visit(context, &one) == 0;
    });
  });
}
void hmmjit_models_free(hmmjit_models* models) { delete models; }

// ---- targets ----------------------------------------------------------------------------------

int32_t hmmjit_targets_create(int32_t alphabet, hmmjit_targets** out, hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Targets(to_alphabet(alphabet))); });
}
int32_t hmmjit_targets_from_file(const char* path, const char* format, hmmjit_targets** out,
                                 hmmjit_error** error) {
  return run(error, [&] {
    give(out, hmmjit::Targets::from_file(&required(path, "path"), text_of(format)));
  });
}
int32_t hmmjit_targets_load(const char* path, int32_t alphabet, const char* format,
                            hmmjit_targets** out, hmmjit_error** error) {
  return run(error, [&] {
    give(out,
         hmmjit::Targets::load(&required(path, "path"), to_alphabet(alphabet), text_of(format)));
  });
}
int32_t hmmjit_targets_from_memory(const void* bytes, size_t size, int32_t alphabet,
                                   const char* format, const char* name, hmmjit_targets** out,
                                   hmmjit_error** error) {
  return run(error, [&] {
    const auto* data = static_cast<const char*>(bytes);
    if (size > 0) required(data, "bytes");
    give(out, hmmjit::Targets::from_memory({data, size}, to_alphabet(alphabet), text_of(format),
                                           name != nullptr ? name : "memory"));
  });
}
int32_t hmmjit_targets_add(hmmjit_targets* targets, const char* name, const char* accession,
                           const char* description, const char* residues, size_t length,
                           hmmjit_error** error) {
  return run(error, [&] {
    if (length > 0) required(residues, "residues");
    const std::string own[] = {text_of(name), text_of(accession), text_of(description)};
    required(targets, "targets")
        .value.add({own[0], std::string_view(residues, length), own[1], own[2]});
  });
}
int32_t hmmjit_targets_append(hmmjit_targets* targets, const hmmjit_targets* from,
                              hmmjit_error** error) {
  return run(error, [&] { required(targets, "targets").value.add(required(from, "from").value); });
}
uint64_t hmmjit_targets_count(const hmmjit_targets* targets) {
  return targets != nullptr ? targets->value.size() : 0;
}
uint64_t hmmjit_targets_residues(const hmmjit_targets* targets) {
  return targets != nullptr ? targets->value.residues() : 0;
}
void hmmjit_targets_free(hmmjit_targets* targets) { delete targets; }

// ---- target databases -------------------------------------------------------------------------

int32_t hmmjit_database_build(const hmmjit_targets* const* inputs, size_t count, int32_t alphabet,
                              const char* path, hmmjit_error** error) {
  return run(error, [&] {
    std::vector<hmmjit::Targets> all;
    for (size_t i = 0; i < count; ++i)
      all.push_back(required((&required(inputs, "inputs"))[i], "inputs").value);
    hmmjit::build_database(all, &required(path, "path"), to_alphabet(alphabet));
  });
}
int32_t hmmjit_database_get_info(const char* path, hmmjit_database_info* info, hmmjit_text** about,
                                 hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::DatabaseInfo d = hmmjit::database_info(&required(path, "path"));
    hmmjit_database_info out{};
    out.format_version = d.format_version;
    out.alphabet = static_cast<int32_t>(d.alphabet);
    out.targets = d.targets;
    out.residues = d.residues;
    out.shortest = d.shortest;
    out.median = d.median;
    out.longest = d.longest;
    out.file_bytes = d.file_bytes;
    out.identity = d.identity;
    write(info, out);
    if (about == nullptr) return;
    std::string lines = "program " + d.program + "\n";
    for (const std::string& source : d.sources) lines += "source " + source + "\n";
    give(about, std::move(lines));
  });
}
int32_t hmmjit_database_verify(const char* path, hmmjit_error** error) {
  return run(error, [&] { hmmjit::verify_database(&required(path, "path")); });
}

// ---- kernel cache -----------------------------------------------------------------------------

int32_t hmmjit_cache_open(const hmmjit_cache_settings* settings, hmmjit_cache** out,
                          hmmjit_error** error) {
  return run(error, [&] {
    hmmjit_cache_settings defaults{};
    defaults.mode = -1;
    const hmmjit_cache_settings s = read(settings, defaults);
    hmmjit::CacheSettings to = hmmjit::CacheSettings::from_environment();
    if (s.directory != nullptr) to.directory = s.directory;
    if (s.system_directory != nullptr) to.system_directory = s.system_directory;
    if (s.mode != -1)
      to.mode = to_enum<hmmjit::CacheMode>(s.mode, HMMJIT_CACHE_STRICT, "cache mode");
    if (s.allow_group != 0) to.allow_group = true;
    if (s.max_bytes > 0) to.max_bytes = s.max_bytes;
    if (s.max_memory_bytes > 0) to.max_memory_bytes = s.max_memory_bytes;
    give(out, hmmjit::Cache(std::move(to)));
  });
}
const char* hmmjit_cache_directory(const hmmjit_cache* cache) {
  return cache != nullptr ? cache->value.directory().c_str() : "";
}
int32_t hmmjit_cache_get_statistics(const hmmjit_cache* cache, hmmjit_cache_statistics* statistics,
                                    hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::CacheStatistics s = required(cache, "cache").value.statistics();
    hmmjit_cache_statistics out{};
    out.memory_hits = s.memory_hits;
    out.user_hits = s.user_hits;
    out.system_hits = s.system_hits;
    out.misses = s.misses;
    out.published = s.published;
    out.publish_failures = s.publish_failures;
    out.bad_entries = s.bad_entries;
    out.refused_entries = s.refused_entries;
    out.entries = s.entries;
    out.disk_bytes = s.disk_bytes;
    write(statistics, out);
  });
}
int32_t hmmjit_cache_trim(const hmmjit_cache* cache, uint64_t max_bytes, uint64_t* count,
                          hmmjit_error** error) {
  return counted(cache, count, error, [&](hmmjit::Cache& c) { return c.trim(max_bytes); });
}
int32_t hmmjit_cache_clear(const hmmjit_cache* cache, uint64_t* count, hmmjit_error** error) {
  return counted(cache, count, error, [](hmmjit::Cache& c) { return c.clear(); });
}
int32_t hmmjit_cache_export(const hmmjit_cache* cache, const char* path, uint64_t* count,
                            hmmjit_error** error) {
  return counted(cache, count, error,
                 [&](hmmjit::Cache& c) { return c.export_bundle(&required(path, "path")); });
}
int32_t hmmjit_cache_import(const hmmjit_cache* cache, const char* path, uint64_t* count,
                            hmmjit_error** error) {
  return counted(cache, count, error,
                 [&](hmmjit::Cache& c) { return c.import_bundle(&required(path, "path")); });
}
void hmmjit_cache_free(hmmjit_cache* cache) { delete cache; }

// ---- search -----------------------------------------------------------------------------------

int32_t hmmjit_search_options_init(hmmjit_search_options* options, hmmjit_error** error) {
  return run(error, [&] { write(options, default_options()); });
}

int32_t hmmjit_cancellation_create(hmmjit_cancellation** out, hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Cancellation()); });
}
void hmmjit_cancellation_cancel(const hmmjit_cancellation* cancellation) {
  if (cancellation == nullptr) return;
  const_cast<hmmjit_cancellation*>(cancellation)->value.cancel();  // atomic
}
void hmmjit_cancellation_free(hmmjit_cancellation* cancellation) { delete cancellation; }

int32_t hmmjit_search(const hmmjit_models* models, const hmmjit_targets* targets,
                      const hmmjit_search_options* options, const hmmjit_callbacks* callbacks,
                      hmmjit_results** out, hmmjit_error** error) {
  return run(error, [&] {
    required(out, "the handle to fill");
    const hmmjit_callbacks c = read(callbacks);
    hmmjit::SearchCallbacks to;
    if (c.result != nullptr) {
      to.result = [&](const hmmjit::ModelResult& result) {
        const hmmjit_result handle{result};
        if (c.result(c.context, &handle) == 0) return;
        throw Error(ErrorCode::kInterrupted, "the search was cancelled");
      };
    }
    if (c.progress != nullptr) {
      to.progress = [&](const hmmjit::Progress& p) {
        const hmmjit_progress progress{sizeof progress,
                                       p.models_started,
                                       p.models_done,
                                       p.targets,
                                       p.residues,
                                       p.target_bytes_read,
                                       p.target_bytes_total,
                                       p.cells,
                                       p.cells_queued,
                                       p.targets_complete,
                                       0};
        return c.progress(c.context, &progress) == 0;
      };
    }
    if (c.warning != nullptr) {
      to.warning = [&](const Error& warning) {
        const hmmjit_error handle{warning};
        c.warning(c.context, &handle);
      };
    }
    if (c.interval_ms > 0) to.interval = std::chrono::milliseconds(c.interval_ms);
    if (c.cancellation != nullptr) to.cancellation = c.cancellation->value;
    // Callbacks may free the handles.
    const hmmjit::Models own_models = required(models, "models").value;
    const hmmjit::Targets own_targets = required(targets, "targets").value;
    hmmjit::SearchResults found = hmmjit::search(own_models, own_targets, to_options(options), to);
    auto results = std::make_unique<hmmjit_results>();
    results->statistics = std::move(found.statistics);
    for (hmmjit::ModelResult& model : found.models) results->models.push_back({std::move(model)});
    *out = results.release();
  });
}

size_t hmmjit_results_count(const hmmjit_results* results) {
  return results != nullptr ? results->models.size() : 0;
}
const hmmjit_result* hmmjit_results_get(const hmmjit_results* results, size_t index) {
  return results != nullptr && index < results->models.size() ? &results->models[index] : nullptr;
}
int32_t hmmjit_results_statistics(const hmmjit_results* results,
                                  hmmjit_search_statistics* statistics, hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::SearchStatistics& s = required(results, "results").statistics;
    hmmjit_search_statistics out{};
    out.backend = s.backend.c_str();
    out.device = s.device.c_str();
    out.threads = s.threads;
    out.models = s.models;
    out.targets = s.targets;
    out.residues = s.residues;
    out.passes = s.passes;
    out.hits_reported = s.hits_reported;
    out.domains_reported = s.domains_reported;
    out.device_cells = s.device_cells;
    out.device_launches = s.device_launches;
    out.wall_seconds = s.wall_seconds;
    out.read_seconds = s.read_seconds;
    out.setup_seconds = s.setup_seconds;
    out.msv_seconds = s.msv_seconds;
    out.bias_seconds = s.bias_seconds;
    out.viterbi_seconds = s.viterbi_seconds;
    out.scoring_seconds = s.scoring_seconds;
    out.counts = to_c(s.counts);
    out.streamed = s.streamed;
    out.spooled = s.spooled;
    out.ssv_seconds = s.ssv_seconds;
    out.report_seconds = s.report_seconds;
    out.verified = s.verified;
    out.peak_resident_bytes = s.peak_resident_bytes;
    out.device_busy_seconds = s.device_busy_seconds;
    out.device_active_seconds = s.device_active_seconds;
    out.device_peak_bytes = s.device_peak_bytes;
    out.device_upload_bytes = s.device_upload_bytes;
    out.kernels = s.kernels;
    out.kernels_compiled = s.kernels_compiled;
    out.kernels_loaded = s.kernels_loaded;
    out.compile_seconds = s.compile_seconds;
    out.json = s.json.c_str();
    write(statistics, out);
  });
}
void hmmjit_results_free(hmmjit_results* results) { delete results; }

// ---- results of one model ---------------------------------------------------------------------

int32_t hmmjit_result_get_info(const hmmjit_result* result, hmmjit_result_info* info,
                               hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::ModelResult& r = required(result, "result").value;
    hmmjit_result_info out{};
    out.model_index = r.index();
    out.model_name = r.model_name().c_str();
    out.model_accession = r.model_accession().c_str();
    out.model_description = r.model_description().c_str();
    out.model_length = r.model_length();
    out.has_alignments = r.has_alignments();
    out.hits = r.hits().size();
    out.reported = r.reported();
    out.included = r.included();
    out.domains = all_domains(r).size();
    out.Z = r.Z();
    out.domZ = r.domZ();
    out.seconds = r.seconds();
    out.counts = to_c(r.counts());
    write(info, out);
  });
}

int32_t hmmjit_result_get_hits(const hmmjit_result* result, size_t first, size_t count,
                               hmmjit_hit* hits, hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::ModelResult& r = required(result, "result").value;
    check_range(first, count, r.hits().size(), hits);
    const auto domains = all_domains(r);
    const size_t size = count > 0 ? hits->size : 0;
    for (size_t i = 0; i < count; ++i) {
      const hmmjit::Hit& hit = r.hits()[first + i];
      hmmjit_hit out{};
      out.name = c_text(hit.name);
      out.accession = c_text(hit.accession);
      out.description = c_text(hit.description);
      out.index = hit.index;
      out.e_value = hit.e_value;
      out.score = hit.score;
      out.bias = hit.bias;
      out.expected_domains = hit.expected_domains;
      out.length = hit.length;
      out.reported = hit.reported;
      out.included = hit.included;
      out.regions = hit.regions;
      out.clustered = hit.clustered;
      out.overlaps = hit.overlaps;
      out.envelopes = hit.envelopes;
      out.best_domain = hit.best_domain;
      out.first_domain = static_cast<size_t>(hit.domains.data() - domains.data());
      out.domains = hit.domains.size();
      write(element(hits, i, size), out, size);
    }
  });
}

int32_t hmmjit_result_get_domains(const hmmjit_result* result, size_t first, size_t count,
                                  hmmjit_domain* domains, hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::ModelResult& r = required(result, "result").value;
    const auto all = all_domains(r);
    check_range(first, count, all.size(), domains);
    const size_t size = count > 0 ? domains->size : 0;
    const auto hits = r.hits();
    // The hit that the first of them belongs to: domains lie in the order of the hits.
    size_t hit =
        static_cast<size_t>(std::upper_bound(hits.begin(), hits.end(), all.data() + first,
                                             [](const hmmjit::Domain* d, const hmmjit::Hit& h) {
                                               return d < h.domains.data() + h.domains.size();
                                             }) -
                            hits.begin());
    for (size_t i = 0; i < count; ++i) {
      const hmmjit::Domain& d = all[first + i];
      while (&d >= hits[hit].domains.data() + hits[hit].domains.size()) ++hit;
      hmmjit_domain out{};
      out.hit = hit;
      out.envelope_from = d.envelope_from;
      out.envelope_to = d.envelope_to;
      out.alignment_from = d.alignment_from;
      out.alignment_to = d.alignment_to;
      out.model_from = d.model_from;
      out.model_to = d.model_to;
      out.reported = d.reported;
      out.included = d.included;
      out.score = d.score;
      out.bias = d.bias;
      out.conditional_e_value = d.conditional_e_value;
      out.independent_e_value = d.independent_e_value;
      out.accuracy = d.accuracy;
      out.model = c_text(d.alignment.model);
      out.match = c_text(d.alignment.match);
      out.sequence = c_text(d.alignment.sequence);
      out.posterior = c_text(d.alignment.posterior);
      out.reference = c_text(d.alignment.reference);
      out.structure = c_text(d.alignment.structure);
      write(element(domains, i, size), out, size);
    }
  });
}

int32_t hmmjit_result_copy(const hmmjit_result* result, hmmjit_result** out, hmmjit_error** error) {
  return run(error, [&] { give(out, required(result, "result").value); });
}
void hmmjit_result_free(hmmjit_result* result) { delete result; }

// ---- reports ----------------------------------------------------------------------------------

int32_t hmmjit_report_create(int32_t kind, const char* path, const hmmjit_report_options* options,
                             hmmjit_report** out, hmmjit_error** error) {
  return run(error, [&] {
    hmmjit::SearchOptions search;
    const hmmjit::ReportOptions to = to_options(options, search);
    const auto report_kind =
        to_enum<hmmjit::ReportKind>(kind, HMMJIT_REPORT_HTML_PAGE, "kind of report");
    give(out, path != nullptr ? hmmjit::Report::to_file(report_kind, path, to)
                              : hmmjit::Report(report_kind, to));
  });
}
int32_t hmmjit_main_report_header(const hmmjit_run_info* given_run,
                                  const hmmjit_report_options* options, hmmjit_text** out,
                                  hmmjit_error** error) {
  return run(error, [&] {
    hmmjit::SearchOptions search;
    const hmmjit::ReportOptions to = to_options(options, search);
    give(out, hmmjit::main_report_header(to_run(given_run), search, to));
  });
}
int32_t hmmjit_report_add_text(hmmjit_report* report, const char* text, hmmjit_error** error) {
  return run(error, [&] { required(report, "report").value.add_text(&required(text, "text")); });
}
int32_t hmmjit_report_add(hmmjit_report* report, const hmmjit_result* result,
                          hmmjit_error** error) {
  return run(error,
             [&] { required(report, "report").value.add(required(result, "result").value); });
}
int32_t hmmjit_report_complete(hmmjit_report* report, const hmmjit_run_info* given_run,
                               hmmjit_error** error) {
  return run(error, [&] { required(report, "report").value.complete(to_run(given_run)); });
}
int32_t hmmjit_report_take_text(hmmjit_report* report, hmmjit_text** out, hmmjit_error** error) {
  return run(error, [&] { give(out, required(report, "report").value.take_text()); });
}
void hmmjit_report_free(hmmjit_report* report) { delete report; }

// ---- devices ----------------------------------------------------------------------------------

int32_t hmmjit_device_count(int32_t* count, hmmjit_text** note, hmmjit_error** error) {
  return run(error, [&] {
    required(count, "count");
    const hmmjit::DriverInfo info = hmmjit::driver_info();
    const auto devices = info.ready ? hmmjit::devices().size() : 0;
    if (note != nullptr) give(note, info.message);
    *count = static_cast<int32_t>(devices);
  });
}
int32_t hmmjit_device_get(int32_t ordinal, hmmjit_device* device, hmmjit_error** error) {
  return run(error, [&] {
    const auto devices = hmmjit::devices();
    if (ordinal < 0 || static_cast<size_t>(ordinal) >= devices.size()) {
      throw Error(ErrorCode::kNoDevice, "no GPU " + std::to_string(ordinal) + " on this machine",
                  {}, hmmjit::driver_info().message);
    }
    write(device, to_c(devices[static_cast<size_t>(ordinal)]));
  });
}
int32_t hmmjit_device_find(const char* name, hmmjit_device* device, hmmjit_error** error) {
  return run(error, [&] { write(device, to_c(hmmjit::find_device(&required(name, "name")))); });
}
int32_t hmmjit_compiler_version(int32_t* major, int32_t* minor, hmmjit_text** note,
                                hmmjit_error** error) {
  return run(error, [&] {
    required(major, "major");
    required(minor, "minor");
    const hmmjit::CompilerInfo info = hmmjit::compiler_info();
    if (note != nullptr) give(note, info.found ? info.path : info.message);
    *major = info.found ? info.major : 0;
    *minor = info.found ? info.minor : 0;
  });
}

// ---- engine: own kernels ----------------------------------------------------------------------

int32_t hmmjit_offer_add(hmmjit_offer* offer, const hmmjit_configuration* configuration,
                         hmmjit_error** error) {
  return run(error, [&] {
    hmmjit_configuration defaults{};
    defaults.threads_x = 32;
    defaults.threads_y = defaults.threads_z = 1;
    defaults.registers = 255;
    defaults.items_per_clock_per_sm = 1;
    const hmmjit_configuration c = read(&required(configuration, "configuration"), defaults);
    hmmjit::Configuration out;
    out.constants = to_constants(c.constants, c.constant_count);
    out.launch = {c.threads_x, c.threads_y, c.threads_z, c.dynamic_shared_bytes};
    out.expected.registers = c.registers;
    out.expected.local_bytes = c.local_bytes;
    out.expected.items_per_clock_per_sm = c.items_per_clock_per_sm;
    out.expected.binding_resource = text_of(c.binding_resource);
    required(offer, "offer").configurations.push_back(std::move(out));
  });
}
void hmmjit_offer_reject(hmmjit_offer* offer, const char* reason) {
  (void)run(nullptr, [&] {
    required(offer, "offer").rejected = true;
    offer->rejection = text_of(reason);
  });
}

int32_t hmmjit_engine_create(const hmmjit_engine_settings* settings, hmmjit_engine** out,
                             hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit_engine_settings s = read(settings);
    hmmjit::EngineSettings to;
    for (size_t i = 0; i < s.template_count; ++i) {
      const hmmjit_template& t = (&required(s.templates, "templates"))[i];
      to.templates.push_back({text_of(t.path), text_of(t.text)});
    }
    for (size_t i = 0; i < s.variant_count; ++i) {
      const hmmjit_variant& first = required(s.variants, "variants");
      to.variants.push_back(to_variant(element(&first, i, first.size)));
    }
    if (s.cache != nullptr) to.cache = s.cache->value;
    to.compile_threads = s.compile_threads;
    to.highest_compiler_major = s.highest_compiler_major;
    give(out, hmmjit::Engine(std::move(to)));
  });
}
void hmmjit_engine_free(hmmjit_engine* engine) { delete engine; }

int32_t hmmjit_engine_plan(const hmmjit_engine* engine, const hmmjit_problem* problem,
                           const hmmjit_device* device, const hmmjit_plan_options* options,
                           hmmjit_plan** out, hmmjit_error** error) {
  return run(error, [&] {
    give(out, required(engine, "engine")
                  .value.plan(to_problem(problem), to_cpp(device), to_plan_options(read(options))));
  });
}
int32_t hmmjit_engine_plan_stage(const hmmjit_engine* engine, const char* stage,
                                 int32_t model_length, const hmmjit_device* device,
                                 const hmmjit_plan_options* options, hmmjit_plan** out,
                                 hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit_plan_options o = read(options);
    const int codes = o.alphabet_codes != 0 ? o.alphabet_codes : 29;
    give(out, required(engine, "engine")
                  .value.plan_stage(hmmjit::find_stage(text_of(stage)), model_length,
                                    to_cpp(device), to_plan_options(o), codes));
  });
}
int32_t hmmjit_engine_render(const hmmjit_engine* engine, const hmmjit_plan* plan,
                             hmmjit_text** out, hmmjit_error** error) {
  return run(error, [&] {
    give(out, required(engine, "engine").value.render(required(plan, "plan").value).text);
  });
}
int32_t hmmjit_engine_compile(const hmmjit_engine* engine, const hmmjit_plan* plan,
                              hmmjit_image** out, hmmjit_error** error) {
  return run(error, [&] {
    hmmjit::Engine handle = required(engine, "engine").value;  // shares the engine
    hmmjit::KernelImage image = handle.compile(required(plan, "plan").value);
    std::string bytes(image.bytes());
    give(out, std::move(image), std::move(bytes));
  });
}
void hmmjit_engine_cancel(const hmmjit_engine* engine) {
  if (engine == nullptr) return;
  (void)run(nullptr, [&] { hmmjit::Engine(engine->value).cancel(); });
}

const char* hmmjit_plan_text(const hmmjit_plan* plan) {
  return plan != nullptr ? plan->value.text().c_str() : "";
}
const char* hmmjit_plan_json(const hmmjit_plan* plan) {
  return plan != nullptr ? plan->value.json().c_str() : "";
}
const char* hmmjit_plan_variant(const hmmjit_plan* plan) {
  return plan != nullptr ? plan->value.chosen().variant.c_str() : "";
}
int32_t hmmjit_plan_constant(const hmmjit_plan* plan, const char* name, int64_t* value,
                             hmmjit_error** error) {
  return run(error, [&] {
    required(value, "value") =
        hmmjit::constant(required(plan, "plan").value.chosen().constants, &required(name, "name"));
  });
}
void hmmjit_plan_free(hmmjit_plan* plan) { delete plan; }

int32_t hmmjit_image_get_info(const hmmjit_image* image, hmmjit_image_info* info,
                              hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::KernelImage& i = required(image, "image").value;
    hmmjit_image_info out{};
    out.name = i.name().c_str();
    out.variant = i.candidate().variant.c_str();
    out.architecture = i.architecture().c_str();
    out.origin = i.origin().c_str();
    out.log = i.log().c_str();
    out.bytes = image->text.data();
    out.byte_count = image->text.size();
    out.is_ptx = i.is_ptx();
    out.registers = i.resources().registers;
    out.local_bytes = i.resources().local_bytes;
    out.spill_bytes = i.resources().spill_bytes;
    out.static_shared_bytes = i.resources().static_shared_bytes;
    out.parameter_bytes = i.parameter_bytes();
    out.seconds = i.seconds();
    write(info, out);
  });
}
void hmmjit_image_free(hmmjit_image* image) { delete image; }

// ---- engine: launches -------------------------------------------------------------------------

int32_t hmmjit_gpu_open(int32_t ordinal, hmmjit_gpu** out, hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Gpu(ordinal)); });
}
int32_t hmmjit_gpu_get_device(const hmmjit_gpu* gpu, hmmjit_device* device, hmmjit_error** error) {
  return run(error, [&] { write(device, to_c(required(gpu, "gpu").value.device())); });
}
int32_t hmmjit_gpu_memory(const hmmjit_gpu* gpu, uint64_t* free_bytes, uint64_t* total_bytes,
                          hmmjit_error** error) {
  return run(error, [&] {
    const auto memory = required(gpu, "gpu").value.memory();
    if (free_bytes != nullptr) *free_bytes = memory.free;
    if (total_bytes != nullptr) *total_bytes = memory.total;
  });
}
int32_t hmmjit_gpu_synchronize(const hmmjit_gpu* gpu, hmmjit_error** error) {
  return run(error, [&] { required(gpu, "gpu").value.synchronize(); });
}
void hmmjit_gpu_free(hmmjit_gpu* gpu) { delete gpu; }

int32_t hmmjit_stream_create(const hmmjit_gpu* gpu, hmmjit_stream** out, hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Stream(required(gpu, "gpu").value)); });
}
int32_t hmmjit_stream_synchronize(const hmmjit_stream* stream, hmmjit_error** error) {
  return run(error, [&] { required(stream, "stream").value.synchronize(); });
}
int32_t hmmjit_stream_finished(const hmmjit_stream* stream, int32_t* finished,
                               hmmjit_error** error) {
  return run(error,
             [&] { required(finished, "finished") = required(stream, "stream").value.finished(); });
}
void hmmjit_stream_free(hmmjit_stream* stream) { delete stream; }

int32_t hmmjit_event_create(const hmmjit_gpu* gpu, int32_t timing, hmmjit_event** out,
                            hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Event(required(gpu, "gpu").value, timing != 0)); });
}
int32_t hmmjit_event_record(hmmjit_event* event, const hmmjit_stream* stream,
                            hmmjit_error** error) {
  return run(error,
             [&] { required(event, "event").value.record(required(stream, "stream").value); });
}
int32_t hmmjit_event_synchronize(const hmmjit_event* event, hmmjit_error** error) {
  return run(error, [&] { required(event, "event").value.synchronize(); });
}
int32_t hmmjit_event_finished(const hmmjit_event* event, int32_t* finished, hmmjit_error** error) {
  return run(error,
             [&] { required(finished, "finished") = required(event, "event").value.finished(); });
}
int32_t hmmjit_event_wait_in(const hmmjit_event* event, const hmmjit_stream* stream,
                             hmmjit_error** error) {
  return run(error,
             [&] { required(event, "event").value.wait_in(required(stream, "stream").value); });
}
int32_t hmmjit_event_milliseconds(const hmmjit_event* start, const hmmjit_event* end,
                                  float* milliseconds, hmmjit_error** error) {
  return run(error, [&] {
    required(milliseconds, "milliseconds") =
        hmmjit::Event::milliseconds(required(start, "start").value, required(end, "end").value);
  });
}
void hmmjit_event_free(hmmjit_event* event) { delete event; }

int32_t hmmjit_buffer_create(const hmmjit_gpu* gpu, size_t bytes, hmmjit_buffer** out,
                             hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Buffer(required(gpu, "gpu").value, bytes)); });
}
uint64_t hmmjit_buffer_address(const hmmjit_buffer* buffer) {
  return buffer != nullptr ? buffer->value.address() : 0;
}
int32_t hmmjit_buffer_upload(hmmjit_buffer* buffer, const hmmjit_stream* stream, const void* from,
                             size_t bytes, size_t offset, hmmjit_error** error) {
  return run(error, [&] {
    required(buffer, "buffer").value.upload(required(stream, "stream").value, from, bytes, offset);
  });
}
int32_t hmmjit_buffer_download(const hmmjit_buffer* buffer, const hmmjit_stream* stream, void* to,
                               size_t bytes, size_t offset, hmmjit_error** error) {
  return run(error, [&] {
    required(buffer, "buffer").value.download(required(stream, "stream").value, to, bytes, offset);
  });
}
int32_t hmmjit_buffer_fill(hmmjit_buffer* buffer, const hmmjit_stream* stream, uint8_t value,
                           size_t bytes, size_t offset, hmmjit_error** error) {
  return run(error, [&] {
    required(buffer, "buffer").value.fill(required(stream, "stream").value, value, bytes, offset);
  });
}
void hmmjit_buffer_free(hmmjit_buffer* buffer) { delete buffer; }

int32_t hmmjit_engine_load(const hmmjit_engine* engine, const hmmjit_plan* plan,
                           const hmmjit_gpu* gpu, hmmjit_kernel** out, hmmjit_error** error) {
  return run(error, [&] {
    hmmjit::Engine handle = required(engine, "engine").value;
    give(out, handle.load(required(plan, "plan").value, required(gpu, "gpu").value));
  });
}
uint32_t hmmjit_kernel_resident_blocks(const hmmjit_kernel* kernel) {
  return kernel != nullptr ? kernel->value.resident_blocks() : 0;
}
int32_t hmmjit_kernel_launch(const hmmjit_kernel* kernel, const hmmjit_stream* stream,
                             uint32_t blocks_x, uint32_t blocks_y, uint32_t blocks_z,
                             const void* parameters, size_t parameter_bytes, hmmjit_error** error) {
  return run(error, [&] {
    required(kernel, "kernel")
        .value.launch_bytes(required(stream, "stream").value, {blocks_x, blocks_y, blocks_z},
                            parameters, parameter_bytes);
  });
}
void hmmjit_kernel_free(hmmjit_kernel* kernel) { delete kernel; }

}  // extern "C"
