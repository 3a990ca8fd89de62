// The engine by itself: from a kernel template and a catalogue entry to a kernel that runs.
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
// A host brings templates (CUDA C++ text) and catalogue entries (KernelVariant): which problems an
// entry accepts, and with which constants, launch shape and resources. The engine plans (no GPU
// needed), renders the constants into the text, compiles at run time or takes the image from the
// cache, checks that the image keeps what its entry promised (no spills, no more registers), passes
// to the next candidate when it does not, loads it, and launches it. The kernels of the profile
// search go the same way: their templates and entries are in the catalogue of every engine.
//
// Templates. One `extern "C" __global__` kernel per entry, which takes one struct by value:
//
//   #include "plan_constants.h"           // replaced by:  namespace plan_constants {
//   using namespace plan_constants;       //                 enum : int { kTile = 32 }; ... }
//   struct Parameters { float* image; int width; };
//   extern "C" __global__ void scale(Parameters p) { ... kTile ... }
//
// Quoted includes are resolved among the templates only ("mine/common.cuh", or hmmjit's own, such
// as "common/intrinsics.cuh"); there are no other headers. Templates are ASCII. Every constant must
// be used, and every plan_constants:: name must exist: otherwise rendering fails. Constants are
// enumerators, since a constant that is a variable becomes one of the device's module; where a type
// is deduced from one, say int(kTile).
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
/// In the order in which a template sees them; names are unique.
using Constants = std::vector<Constant>;

/// Value of `name`; throws Error kUsage when there is none. Thread-safe.
HMMJIT_EXPORT std::int64_t constant(const Constants& constants, std::string_view name);

/// The part of a computation that plans depend on: a family of kernels and named numbers. Data and
/// values that change from launch to launch are launch parameters instead.
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

/// Promises of an entry's author for one configuration, compared with the compiled image. A kernel
/// whose needs are not known yet promises the defaults; KernelImage::info() tells the numbers.
struct Expected {
  int registers = 255;                ///< per thread, a ceiling
  int local_bytes = 0;                ///< local memory a thread may use by design; more is a spill
  double items_per_clock_per_sm = 1;  ///< sustained useful work: ranks the candidates of a plan
  std::string binding_resource = {};  ///< "memory bandwidth", "issue", ...: for the plan's text
};

/// One way to run a variant.
struct Configuration {
  Constants constants = {};
  LaunchShape launch = {};
  Expected expected = {};
};

/// Accepted, or the reason why not, which plans repeat.
struct Verdict {
  bool accepted = true;
  std::string reason = {};
};

/// A catalogue entry. The functions must be pure: equal arguments, equal results; they may be
/// called from several threads, with the floating-point mode of the caller of Engine::plan. Their
/// exceptions pass through Engine::plan unchanged.
struct KernelVariant {
  std::string name = {};           ///< unique in its engine: "mrf_tile"
  std::string family = {};         ///< of problems; must not be a stage of the profile search
  std::string template_file = {};  ///< path of a template: "mrf/tile.cu"
  std::string entry_name = {};     ///< its extern "C" kernel
  /// False: chosen only when forced by name or when nothing else is left.
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

/// A variant or candidate that was passed over.
struct Rejection {
  std::string variant;  ///< its name
  std::string reason;   ///< a sentence
};

/// Which kernel, and why. Source of occupancies: CUDA C++ Programming Guide, compute capabilities.
struct PlanInfo {
  std::string family;  ///< of the problem; a stage's name for the profile search
  Device device;       ///< the one it was made for
  Candidate chosen;    ///< the first to be tried
  /// Candidates tried in this order if the chosen one breaks its promises.
  std::vector<Candidate> fallbacks;
  std::vector<Rejection> rejected;  ///< every variant that is not chosen
  std::string text;                 ///< several lines for people
  std::string json;                 ///< one object on one line for programs
};

/// A plan. Immutable; copies share; shareable between threads. Holds on to the catalogue it was
/// made from.
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
  kGate,      ///< which targets go on after each filter
  kParser,    ///< Forward, Backward and regions of the targets that passed
  kEnsemble,  ///< sampled traces of regions with several domains
  kEnvelope,  ///< scores and alignments of single domains
};
/// By its name: "ssv", "msv", ..., "envelope". Throws Error kUsage, with all names, for another.
HMMJIT_EXPORT Stage find_stage(const std::string& name);

struct RenderedSource {
  std::string text;                ///< CUDA C++ without includes, the compiler's input
  std::string file_name;           ///< name that compiler messages carry
  std::vector<std::string> files;  ///< templates that went into it
};

/// A compiled kernel, not loaded. Immutable; copies share; shareable between threads. References,
/// and what `info` points to, live as long as any copy. No member throws.
class HMMJIT_EXPORT KernelImage : public SharedHandle<const struct KernelImageImpl> {
 public:
  using SharedHandle::SharedHandle;
  const hmmjit_image_info& info() const;  ///< described in hmmjit.h
  /// The candidate it was made from: the plan's choice, or the fallback that took its place.
  const Candidate& candidate() const;
  /// Candidates passed over because their images broke the entry's promises.
  const std::vector<Rejection>& rejected() const;
};

/// A kernel being made. Copies share; thread-safe.
class HMMJIT_EXPORT PendingKernel : public SharedHandle<struct PendingKernelImpl> {
 public:
  using SharedHandle::SharedHandle;
  bool ready() const;  ///< get() will not wait
  /// Waits. Throws what making the kernel failed with.
  KernelImage get() const;
};

class Gpu;
class Kernel;

/// Counters of one engine.
struct EngineStatistics {
  std::uint64_t requests = 0;     ///< kernels requested
  std::uint64_t shared = 0;       ///< of these, joined an earlier request
  std::uint64_t compiled = 0;     ///< made by the compiler
  std::uint64_t memory_hits = 0;  ///< taken from the cache: kept by this process,
  std::uint64_t disk_hits = 0;    ///< or read from its folders
  std::uint64_t rejected = 0;     ///< images that broke the promises of their entry
  std::uint64_t failed = 0;       ///< no candidate could be made
  std::uint64_t refused = 0;      ///< images the driver did not load
  double compile_seconds = 0;     ///< summed over threads
};

struct EngineSettings {
  std::vector<TemplateText> templates = {};  ///< the host's own, in addition to hmmjit's
  std::vector<KernelVariant> variants = {};  ///< the host's own catalogue entries
  Cache cache = {};                          ///< default: the environment's settings
  /// Concurrent compiles; 0: the cores granted to the process, at most 12, fewer on little memory.
  /// Every engine has its own pool.
  int compile_threads = 0;
  /// Accept compilers up to this major version; 0: the driver's where there is one, else any.
  int highest_compiler_major = 0;
};

/// Plans, renders, compiles, loads. Handle: copies share. Immutable after construction and
/// thread-safe: any number of threads may plan, compile and load at once, and one kernel is
/// compiled once, however many ask for it, in this and in other processes.
class HMMJIT_EXPORT Engine : public SharedHandle<struct EngineImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// Without a compiler on this machine the engine still plans and renders, and serves kernels
  /// that are in the cache. Throws Error kUsage for an entry without name, template, entry kernel
  /// or configurations, for names given twice, and for a template path that hmmjit itself has.
  Engine();
  explicit Engine(EngineSettings settings);
  Engine(const Engine&) = default;
  Engine& operator=(const Engine&) = default;

  /// Plans a problem of one of the host's families: candidates that fit the device, best
  /// predicted rate first, ties in catalogue order. Deterministic; needs no GPU and no compiler.
  /// Throws Error kCompile, with every reason, when nothing is acceptable; kUsage for an unknown
  /// family or an unknown forced variant.
  Plan plan(const Problem& problem, const Device& device,
            const hmmjit_plan_options& options = PlanOptions()) const;
  /// Plans one stage of the profile search for a model of `model_length` positions.
  Plan plan_stage(Stage stage, int model_length, const Device& device,
                  const hmmjit_plan_options& options = PlanOptions()) const;

  /// The source of the plan's choice. Throws Error kCompile for a template that does not fit it.
  RenderedSource render(const Plan& plan) const;
  /// The image of the plan's choice or of the first fallback that keeps its promises: from
  /// memory, disk, or the compiler (typically 0.1 to 1 s). Waits.
  KernelImage compile(const Plan& plan);
  /// The same without waiting; higher `priority` first.
  PendingKernel request(const Plan& plan, int priority = 0);
  /// compile, then load on `gpu` and prepare for launches with the candidate's shape. An image
  /// that the driver refuses is forgotten and made once more.
  Kernel load(const Plan& plan, const Gpu& gpu);

  /// Ends all compiles, running and queued, with kInterrupted; the engine never compiles again.
  /// Returns at once. Plans and images made before stay valid.
  void cancel();
  EngineStatistics statistics() const;  ///< all 0 before the first kernel is requested
};

/// A GPU of this machine with its primary context, which the library shares with the CUDA runtime
/// and never resets. Handle: copies share; thread-safe.
class HMMJIT_EXPORT Gpu : public SharedHandle<const struct GpuImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// Throws Error kNoDevice, saying why. The first call takes 0.2 to 0.5 s.
  explicit Gpu(int ordinal = 0);
  const Device& device() const;  ///< as the driver describes it
  struct Memory {
    std::uint64_t free = 0, total = 0;  ///< bytes
  };
  Memory memory() const;  ///< now, of all processes; throws the driver's error
  /// Waits for everything queued on the device; throws the first error of earlier launches.
  void synchronize() const;
};

/// An ordered queue of copies, fills and launches. Movable. One thread at a time; destruction
/// does not wait.
class HMMJIT_EXPORT Stream : public SharedHandle<struct StreamImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// Throws Error kResources when the driver has none left.
  explicit Stream(const Gpu& gpu);
  /// A CUstream (cudaStream_t) of the primary context: see hmmjit_stream_from_native.
  static Stream from_native(const Gpu& gpu, void* stream);
  void* native() const;  ///< the CUstream, as long as this object lives
  Stream(Stream&&) noexcept = default;
  Stream& operator=(Stream&&) noexcept = default;
  /// Waits; throws the first error of queued work.
  void synchronize() const;
  /// True when everything queued is done. Throws as synchronize does.
  bool finished() const;
};

/// A point in a stream. Movable. One thread at a time.
class HMMJIT_EXPORT Event : public SharedHandle<struct EventImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// `timing`: milliseconds() can use it. Throws Error kResources when the driver has none left.
  explicit Event(const Gpu& gpu, bool timing = false);
  Event(Event&&) noexcept = default;
  Event& operator=(Event&&) noexcept = default;
  /// The point after everything queued on `stream` so far; an earlier one is forgotten.
  void record(const Stream& stream);
  /// Waits until the point is passed; throws the first error of queued work.
  void synchronize() const;
  bool finished() const;  ///< passed; throws as synchronize does
  /// Later work of `stream` waits for this event.
  void wait_in(const Stream& stream) const;
  /// Milliseconds between two recorded, finished timing events; throws Error for others.
  static float milliseconds(const Event& start, const Event& end);
  void* native() const;  ///< the CUevent (cudaEvent_t), as long as this object lives
};

/// Device memory; contents are undefined until written. Movable. One thread at a time. Freed on
/// destruction, which waits for work that uses it.
class HMMJIT_EXPORT Buffer : public SharedHandle<struct BufferImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// Throws Error kResources when the device has not that much. 0 bytes is an empty buffer.
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
  /// Queued copies; ranges are checked (Error kUsage). See hmmjit_buffer_upload on how long host
  /// memory is in use.
  void upload(const Stream& stream, const void* from, std::size_t bytes, std::size_t offset = 0);
  void download(const Stream& stream, void* to, std::size_t bytes, std::size_t offset = 0) const;
  void fill(const Stream& stream, unsigned char value, std::size_t bytes, std::size_t offset = 0);
};

/// Page-locked host memory: copies from and to it are asynchronous. Movable. Freed on destruction;
/// no stream may use it then.
class HMMJIT_EXPORT PinnedBuffer : public SharedHandle<struct PinnedBufferImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// Throws Error kResources when the system grants no such memory.
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
  int blocks_per_sm() const;  ///< as the driver counts, for the shape
  /// SMs times resident blocks: a grid that fills the device once.
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
  /// `bytes`: size of the kernel's struct; otherwise throws Error kUsage.
  void launch_bytes(const Stream& stream, const Grid& grid, const void* parameters,
                    std::size_t bytes) const;
};

HMMJIT_END_NAMESPACE
