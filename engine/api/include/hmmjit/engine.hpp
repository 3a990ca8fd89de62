// The engine alone: turns a kernel template and a catalogue entry into a running kernel.
//
//   template + catalogue entry --plan--> candidates --render--> source --compile--> image --load-->
//   kernel
//                                         (device)                     (cache, NVRTC)     (driver)
//
//   hmmjit::Engine engine({.templates = {{"mine/scale.cu", text}}, .variants = {variant}});
//   const hmmjit::Gpu gpu;
//   const hmmjit::Kernel kernel = engine.load(engine.plan({"scaling", {}}, gpu.device()), gpu);
//   kernel.launch(hmmjit::Stream(gpu), {blocks}, Parameters{...});
//
// A host brings templates (CUDA C++ text) and catalogue entries (KernelVariant), which tell the
// problems that an entry accepts and its constants, launch shape and resources. The engine plans
// (without GPU), renders the constants into the text, compiles at run time or takes the image from
// the cache, checks that the image keeps the promises of its entry (no spills, no more registers),
// falls back to the next candidate if it breaks them, loads the image, and launches it. The kernels
// of the profile search take the same path: their templates and entries are in the catalogue of
// every engine.
//
// Templates. One `extern "C" __global__` kernel per entry, which takes one struct by value:
//
//   #include "plan_constants.h"           // replaced by:  namespace plan_constants {
//   using namespace plan_constants;       //                 enum : int { kTile = 32 }; ... }
//   struct Parameters { float* image; int width; };
//   extern "C" __global__ void scale(Parameters p) { ... kTile ... }
//
// Quoted includes refer to templates only ("mine/common.cuh", or hmmjit's, such as
// "common/intrinsics.cuh"); no other headers exist. Templates are ASCII. Rendering fails for an
// unused constant and for an unknown plan_constants:: name. Constants are enumerators, because a
// variable would be a symbol of the device's module; write int(kTile) where a type is deduced from
// a constant.
//
// Errors: all functions throw Error. kUsage: contradictory arguments; kCompile: no candidate is
// acceptable, or rendering, compiling or loading failed; kNoDevice: no usable GPU; kResources: out
// of host or device memory; kInterrupted: cancelled.
//
// The design follows Jiang & Ganesan (CUDAMPF, BMC Bioinformatics 17:106, 2016) and Jiang, Ganesan
// & Yao (CUDAMPF++, arXiv 1707.09683): constants of a launch become compile-time constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "hmmjit/cache.hpp"
#include "hmmjit/device.hpp"
#include "hmmjit/error.hpp"

HMMJIT_BEGIN_NAMESPACE

/// A named integer: a constant of a kernel ("kTile"), or a parameter of a problem.
struct Constant {
  std::string name = {};
  std::int64_t value = 0;
};
/// In the order of the rendered template; names are unique.
using Constants = std::vector<Constant>;

/// Value of `name`; throws Error kUsage if missing. Thread-safe.
HMMJIT_EXPORT std::int64_t constant(const Constants& constants, std::string_view name);

/// The part of a computation that plans depend on: a family of kernels and named numbers. Data, and
/// values that change between launches, are launch parameters instead.
struct Problem {
  std::string family = {};    ///< matches KernelVariant::family
  Constants parameters = {};  ///< e.g. {"width", 256}, {"classes", 4}
};

/// Launch shape of a kernel.
struct LaunchShape {
  int threads_x = 32, threads_y = 1, threads_z = 1;  ///< of one block, 1 to 1024 in all
  std::int64_t dynamic_shared_bytes = 0;             ///< of one block
  int block_threads() const { return threads_x * threads_y * threads_z; }
};

/// Promises of an entry's author for one configuration, which the compiled image must keep. Use the
/// defaults while a kernel's needs are unknown: KernelImage::info() shows them.
struct Expected {
  int registers = 255;                ///< per thread, a ceiling
  int local_bytes = 0;                ///< local memory of a thread by design; more is a spill
  double items_per_clock_per_sm = 1;  ///< sustained useful work: ranks the candidates of a plan
  std::string binding_resource = {};  ///< "memory bandwidth", "issue", ...: for the plan's text
};

/// One way to run a variant.
struct Configuration {
  Constants constants = {};
  LaunchShape launch = {};
  Expected expected = {};
};

/// Accepted, or the reason for refusal, which plans show.
struct Verdict {
  bool accepted = true;
  std::string reason = {};
};

/// A catalogue entry. Its functions must be pure (equal arguments give equal results). Several
/// threads may call them, with the floating-point mode of the caller of Engine::plan, which passes
/// on their exceptions unchanged.
struct KernelVariant {
  std::string name = {};           ///< unique in its engine: "mrf_tile"
  std::string family = {};         ///< of problems; must not be a stage of the profile search
  std::string template_file = {};  ///< path of a template: "mrf/tile.cu"
  std::string entry_name = {};     ///< its extern "C" kernel
  /// False: chosen only if forced by name, or without alternative.
  bool competes = true;
  /// Empty: accepts everything of its family.
  std::function<Verdict(const Problem&, const Device&)> accepts = {};
  /// The candidate list for an accepted problem, the author's favourite first.
  std::function<std::vector<Configuration>(const Problem&, const Device&)> configurations = {};
  std::vector<std::string> compile_options = {};  ///< beyond the common ones: "--fmad=false"
  std::string summary = {};                       ///< one sentence
  std::vector<std::string> references = {};       ///< papers
};

struct TemplateText {
  std::string path = {};  ///< '/'-separated, relative: "mrf/tile.cu"
  std::string text = {};
};

/// One kernel that could be made: a variant with one configuration.
struct Candidate {
  std::string variant, template_file, entry_name;
  Constants constants;
  LaunchShape launch;
  Expected expected;
  int blocks_per_sm = 0, warps_per_sm = 0;  ///< expected occupancy
  double occupancy = 0;                     ///< warps over the device's maximum, 0 to 1
  std::string occupancy_limiter;            ///< "registers", "shared memory", "threads", "blocks"
  double predicted_giga_items = 0;          ///< 1e9 items (search kernels: cells) a second
};

/// A rejected variant or candidate.
struct Rejection {
  std::string variant;  ///< its name
  std::string reason;   ///< a sentence
};

/// The chosen kernel, and the reasons. Source of occupancies: CUDA C++ Programming Guide, compute
/// capabilities.
struct PlanInfo {
  std::string family;  ///< of the problem; a stage's name for the profile search
  Device device;       ///< the device of the plan
  Candidate chosen;    ///< tried first
  /// Candidates tried in this order if the chosen one breaks its promises.
  std::vector<Candidate> fallbacks;
  std::vector<Rejection> rejected;  ///< all variants that are not chosen
  std::string text;                 ///< several lines for people
  std::string json;                 ///< one object on one line for programs
};

/// A plan. Immutable; copies share; threads may share it. Keeps its catalogue alive.
class HMMJIT_EXPORT Plan : public SharedHandle<const struct PlanImpl> {
 public:
  using SharedHandle::SharedHandle;
  const PlanInfo& info() const noexcept;  ///< lives as long as any copy
};

/// Described in hmmjit.h.
struct PlanOptions : hmmjit_plan_options {
  PlanOptions() noexcept : hmmjit_plan_options{} { size = sizeof(hmmjit_plan_options); }
};

/// Stages of the profile search that have GPU kernels.
enum class Stage {
  kSsv,
  kMsv,
  kBias,
  kViterbi,
  kForward,
  kGate,      ///< selects the targets that pass each filter
  kParser,    ///< Forward, Backward and regions of the targets that passed
  kEnsemble,  ///< sampled traces of regions with several domains
  kEnvelope,  ///< scores and alignments of single domains
};
/// The stage of a name: "ssv", "msv", ..., "envelope". Throws Error kUsage, with all names, for
/// others.
HMMJIT_EXPORT Stage find_stage(const std::string& name);

struct RenderedSource {
  std::string text;                ///< CUDA C++ without includes, the compiler's input
  std::string file_name;           ///< name in compiler messages
  std::vector<std::string> files;  ///< its templates
};

/// A compiled kernel, not loaded. Immutable; copies share; threads may share it. References and
/// pointers in info() live as long as any copy. No member throws.
class HMMJIT_EXPORT KernelImage : public SharedHandle<const struct KernelImageImpl> {
 public:
  using SharedHandle::SharedHandle;
  const hmmjit_image_info& info() const;  ///< described in hmmjit.h
  /// Its candidate: the plan's choice, or the fallback that replaced it.
  const Candidate& candidate() const;
  /// Candidates whose images broke the entry's promises.
  const std::vector<Rejection>& rejected() const;
};

/// A requested kernel. Copies share; thread-safe.
class HMMJIT_EXPORT PendingKernel : public SharedHandle<struct PendingKernelImpl> {
 public:
  using SharedHandle::SharedHandle;
  bool ready() const;  ///< get() will not wait
  /// Waits. Throws the error if the kernel cannot be made.
  KernelImage get() const;
};

class Gpu;
class Kernel;

/// Counters of one engine.
struct EngineStatistics {
  std::uint64_t requests = 0;     ///< kernels requested
  std::uint64_t shared = 0;       ///< requests that joined an earlier one
  std::uint64_t compiled = 0;     ///< made by the compiler
  std::uint64_t memory_hits = 0;  ///< from the memory of this process
  std::uint64_t disk_hits = 0;    ///< from the cache's folders
  std::uint64_t rejected = 0;     ///< images that broke their entry's promises
  std::uint64_t failed = 0;       ///< no candidate could be made
  std::uint64_t refused = 0;      ///< images that the driver did not load
  double compile_seconds = 0;     ///< summed over threads
};

struct EngineSettings {
  std::vector<TemplateText> templates = {};  ///< the host's own, in addition to hmmjit's
  std::vector<KernelVariant> variants = {};  ///< the host's own catalogue entries
  Cache cache = {};                          ///< default: the environment's settings
  /// Concurrent compiles; 0: one per core granted to the process, at most 12, fewer if memory is
  /// short. Every engine has its own thread pool.
  int compile_threads = 0;
  /// Newest major version of the compiler; 0: the driver's, or any without a driver.
  int highest_compiler_major = 0;
};

/// Plans, renders, compiles, loads. Handle: copies share. Immutable after construction and
/// thread-safe: any number of threads may plan, compile and load concurrently. Concurrent requests,
/// also of other processes, compile a kernel once.
class HMMJIT_EXPORT Engine : public SharedHandle<struct EngineImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// Without a compiler on this machine, the engine plans, renders, and serves kernels from the
  /// cache. Throws Error kUsage for an entry without name, template, entry kernel or
  /// configurations, for repeated names, and for a template path of hmmjit itself.
  Engine();
  explicit Engine(EngineSettings settings);
  Engine(const Engine&) = default;
  Engine& operator=(const Engine&) = default;

  /// Plans a problem of one of the host's families: candidates that fit the device, best
  /// predicted rate first, ties in catalogue order. Deterministic; needs no GPU and no compiler.
  /// Throws Error kCompile, with all reasons, if no variant accepts the problem; kUsage for an
  /// unknown family or forced variant.
  Plan plan(const Problem& problem, const Device& device,
            const hmmjit_plan_options& options = PlanOptions()) const;
  /// Plans one stage of the profile search for a model of `model_length` positions.
  Plan plan_stage(Stage stage, int model_length, const Device& device,
                  const hmmjit_plan_options& options = PlanOptions()) const;

  /// The source of the plan's choice. Throws Error kCompile for a template that does not fit it.
  RenderedSource render(const Plan& plan) const;
  /// The image of the plan's choice, or of the first fallback that keeps its promises: from memory,
  /// disk, or the compiler (typically 0.1 to 1 s). Waits.
  KernelImage compile(const Plan& plan);
  /// As compile, without waiting; higher `priority` first.
  PendingKernel request(const Plan& plan, int priority = 0);
  /// Compiles, loads the image on `gpu`, and prepares it for launches with the candidate's shape.
  /// Makes an image once more if the driver refuses it.
  Kernel load(const Plan& plan, const Gpu& gpu);

  /// Ends all running and queued compiles with kInterrupted; the engine never compiles again.
  /// Returns at once. Existing plans and images stay valid.
  void cancel();
  EngineStatistics statistics() const;  ///< all 0 before the first kernel is requested
};

/// A GPU of this machine with its primary context, which the library shares with the CUDA runtime
/// and never resets. Handle: copies share; thread-safe.
class HMMJIT_EXPORT Gpu : public SharedHandle<const struct GpuImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// Throws Error kNoDevice with the reason. The first call takes 0.2 to 0.5 s.
  explicit Gpu(int ordinal = 0);
  const Device& device() const;  ///< as the driver describes it
  struct Memory {
    std::uint64_t free = 0, total = 0;  ///< bytes
  };
  Memory memory() const;  ///< for all processes, now; throws the driver's error
  /// Waits for all work queued on the device; throws the first error of earlier launches.
  void synchronize() const;
};

/// An ordered queue of copies, fills and launches. Movable. One thread at a time; destruction
/// does not wait.
class HMMJIT_EXPORT Stream : public SharedHandle<struct StreamImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// Throws Error kResources if the driver has none left.
  explicit Stream(const Gpu& gpu);
  /// A CUstream (cudaStream_t) of the primary context: see hmmjit_stream_from_native.
  static Stream from_native(const Gpu& gpu, void* stream);
  void* native() const;  ///< the CUstream, as long as this object lives
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&&) noexcept = default;
  /// Waits; throws the first error of queued work.
  void synchronize() const;
  /// True if all queued work is done. Throws as synchronize does.
  bool finished() const;
};

/// A point in a stream. Movable. One thread at a time.
class HMMJIT_EXPORT Event : public SharedHandle<struct EventImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// `timing`: milliseconds() can use it. Throws Error kResources if the driver has none left.
  explicit Event(const Gpu& gpu, bool timing = false);
  Event(Event&&) noexcept = default;
  Event& operator=(Event&&) noexcept = default;
  /// Moves the event to the point after all work queued on `stream` so far.
  void record(const Stream& stream);
  /// Waits until the stream passes the point; throws the first error of queued work.
  void synchronize() const;
  bool finished() const;  ///< passed; throws as synchronize does
  /// Later work of `stream` waits for this event.
  void wait_in(const Stream& stream) const;
  /// Milliseconds between two recorded, finished timing events; throws Error otherwise.
  static float milliseconds(const Event& start, const Event& end);
  void* native() const;  ///< the CUevent (cudaEvent_t), as long as this object lives
};

/// Device memory; its content is undefined until written. Movable. One thread at a time. The
/// destructor waits for work that uses the memory, then frees it.
class HMMJIT_EXPORT Buffer : public SharedHandle<struct BufferImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// Throws Error kResources if the device lacks the memory. 0 bytes give an empty buffer.
  Buffer(const Gpu& gpu, std::size_t bytes);
  Buffer(Buffer&&) noexcept = default;
  Buffer& operator=(Buffer&&) noexcept = default;
  /// For launch parameters, where the kernel has a pointer.
  std::uint64_t address() const;
  template <typename T>
  T* pointer() const {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address()));
  }
  std::size_t size() const;  ///< bytes
  /// Queued copies. Throw Error kUsage for a range outside the buffer. hmmjit_buffer_upload tells
  /// how long host memory is in use.
  void upload(const Stream& stream, const void* from, std::size_t bytes, std::size_t offset = 0);
  void download(const Stream& stream, void* to, std::size_t bytes, std::size_t offset = 0) const;
  void fill(const Stream& stream, unsigned char value, std::size_t bytes, std::size_t offset = 0);
};

/// Page-locked host memory: copies from and to it are asynchronous. Movable. The destructor frees
/// it; no stream may use it by then.
class HMMJIT_EXPORT PinnedBuffer : public SharedHandle<struct PinnedBufferImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// Throws Error kResources if the system grants no such memory.
  PinnedBuffer(const Gpu& gpu, std::size_t bytes);
  PinnedBuffer(PinnedBuffer&&) noexcept = default;
  PinnedBuffer& operator=(PinnedBuffer&&) noexcept = default;
  void* data() const;
  std::size_t size() const;  ///< bytes
};

/// Blocks of a launch, each number at least 1.
struct Grid {
  unsigned x = 1, y = 1, z = 1;
};

/// Resources per thread or block, as the driver reports them.
struct KernelResources {
  int registers = 0, local_bytes = 0, static_shared_bytes = 0;
};

/// A loaded kernel, ready for launches with its candidate's shape. Handle: copies share; launches
/// from several threads are allowed on different streams.
class HMMJIT_EXPORT Kernel : public SharedHandle<const struct KernelImpl> {
 public:
  using SharedHandle::SharedHandle;
  const KernelImage& image() const;
  int blocks_per_sm() const;  ///< by the driver's count, for this shape
  /// Multiprocessors times resident blocks: a grid that fills the device once.
  unsigned resident_blocks() const;
  KernelResources resources() const;
  /// The CUkernel (cudaKernel_t), which CUDA also accepts as a CUfunction; as long as any copy
  /// lives.
  void* native() const;

  /// Queues one launch; `parameters` is copied at once. Throws Error kUsage for an empty grid or
  /// a struct whose size is not the kernel's; errors of the launch itself appear at the stream's
  /// next synchronization.
  template <typename Parameters>
  void launch(const Stream& stream, const Grid& grid, const Parameters& parameters) const {
    static_assert(std::is_trivially_copyable_v<Parameters>,
                  "kernel parameters are copied byte by byte");
    launch_bytes(stream, grid, &parameters, sizeof(Parameters));
  }
  /// `bytes`: size of the kernel's struct. Throws Error kUsage for other sizes.
  void launch_bytes(const Stream& stream, const Grid& grid, const void* parameters,
                    std::size_t bytes) const;
};

HMMJIT_END_NAMESPACE
