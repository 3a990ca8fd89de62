#include "compile/nvrtc_library.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <fmt/ranges.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <vector>

#include "core/at_end.hpp"
#include "core/folder.hpp"
#include "core/numbers.hpp"
#include "core/own_file.hpp"
#include "core/read_only_file.hpp"
#include "core/text_fields.hpp"

#if HMMJIT_HAVE_CUDA_HEADERS
#include <nvrtc.h>
#endif

namespace hmmjit::compile {
namespace {

namespace fs = std::filesystem;

/// Checked architectures of NVRTC versions; saves loading 100 MB on a cache hit.
struct KnownVersion {
  int major, minor;
  std::array<int, 12> architectures;
};
constexpr std::array<KnownVersion, 1> kKnownVersions{
    KnownVersion{13, 0, {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121}}};

/// Folders in which NVIDIA's PyPI packages install NVRTC, relative to the Python package that
/// contains this library (site-packages/hmmjit) or program (site-packages/hmmjit/bin).
std::vector<std::string> python_folders() {
  std::vector<std::string> folders;
  std::error_code error;
  const fs::path folder = own_file().parent_path();
  for (const fs::path& packages : {folder.parent_path(), folder.parent_path().parent_path()}) {
    for (const char* name : {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"}) {
      if (fs::is_directory(packages / name, error)) folders.push_back((packages / name).string());
    }
  }
  return folders;
}

}  // namespace

const char* image_kind_name(ImageKind kind) { return kind == ImageKind::kCubin ? "cubin" : "ptx"; }

NvrtcSearch NvrtcSearch::from_environment() {
  NvrtcSearch search;
  const auto add = [&](const std::string& folder) {
    if (!folder.empty() && std::ranges::find(search.folders, folder) == search.folders.end()) {
      search.folders.push_back(folder);
    }
  };
  if (const char* only = std::getenv("HMMJIT_NVRTC_DIR"); only != nullptr && *only != '\0') {
    add(only);
    search.system_loader = false;
    return search;
  }
  if (const char* list = std::getenv("LD_LIBRARY_PATH"); list != nullptr) {
    for (std::string_view rest = list; !rest.empty();) add(std::string(take_up_to(&rest, ':')));
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* root = std::getenv(variable);
    if (root == nullptr || *root == '\0') continue;
    add(std::string(root) + "/lib64");
    add(std::string(root) + "/lib");
  }
  for (const std::string& folder : python_folders()) add(folder);
  for (const char* folder :
       {"/usr/local/cuda/lib64", "/usr/local/cuda/lib", "/opt/cuda/lib64",
        "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"}) {
    add(folder);
  }
  return search;
}

#if HMMJIT_HAVE_CUDA_HEADERS

namespace {

constexpr std::array kMajors{13, 12};  // newest first
constexpr const char* kInstall =
    "install NVRTC 12 or 13 (CUDA toolkit, Debian package libnvrtc, or pip/conda package "
    "nvidia-cuda-nvrtc) or name its folder in HMMJIT_NVRTC_DIR";

/// The ELF file's GNU build id in hexadecimal; empty if it has none.
std::string build_id_of(const std::string& path) {
  const auto file = ReadOnlyFile::open(path);
  if (!file) return {};
  const auto read = [&](std::uint64_t at, auto& value) {
    return file->read(at, {reinterpret_cast<char*>(&value), sizeof value}).has_value();
  };
  Elf64_Ehdr header;
  if (!read(0, header)) return {};
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) {
    return {};
  }
  for (int i = 0; i < header.e_phnum; ++i) {
    const std::size_t at = header.e_phoff + static_cast<std::size_t>(i) * header.e_phentsize;
    Elf64_Phdr segment;
    if (!read(at, segment)) return {};
    constexpr std::uint64_t kMostNotes = 1 << 20;  // in bytes; a real library has a few hundred
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMostNotes) continue;
    std::string text(segment.p_filesz, '\0');
    if (!file->read(segment.p_offset, text)) continue;
    std::string_view notes(text);
    while (notes.size() >= sizeof(Elf64_Nhdr)) {
      Elf64_Nhdr note;
      std::memcpy(&note, notes.data(), sizeof note);
      const std::size_t name_bytes = (note.n_namesz + 3u) & ~std::size_t{3};
      const std::size_t value_bytes = (note.n_descsz + 3u) & ~std::size_t{3};
      notes.remove_prefix(sizeof note);
      if (name_bytes + value_bytes > notes.size()) break;
      if (note.n_type == NT_GNU_BUILD_ID && notes.starts_with(std::string_view("GNU", 4))) {
        std::string id;
        for (const char c : notes.substr(name_bytes, note.n_descsz)) {
          fmt::format_to(std::back_inserter(id), "{:02x}", static_cast<unsigned char>(c));
        }
        return id;
      }
      notes.remove_prefix(name_bytes + value_bytes);
    }
  }
  return {};
}

/// NVRTC's built-ins library, libnvrtc-builtins.so.<major>.<minor>. Without loading NVRTC, only
/// this name tells its minor version.
struct Builtins {
  std::string path;
  int minor = -1;
};

/// The built-ins of the given minor version; -1: of the only version in the folder, none if there
/// are several.
Builtins find_builtins(const std::string& nvrtc_path, int major, int minor = -1) {
  Builtins out;
  const std::string prefix = fmt::format("libnvrtc-builtins.so.{}.", major);
  const fs::path folder = fs::path(nvrtc_path).parent_path();
  const auto names = names_in_folder(folder.string());
  if (!names) return out;
  for (const std::string& name : *names) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = std::string_view(name).substr(prefix.size());
    const auto found = parse_int(rest.substr(0, rest.find('.')));
    if (!found || (minor >= 0 && *found != minor)) continue;
    if (out.minor >= 0 && *found != out.minor) return {};
    // "13.0" may lie next to a patch-level file "13.0.88"; the shorter name is enough.
    const std::string path = (folder / name).string();
    if (out.path.empty() || path < out.path) out.path = path;
    out.minor = static_cast<int>(*found);
  }
  return out;
}

}  // namespace

struct NvrtcLibrary::Functions {
  decltype(&nvrtcVersion) version = nullptr;
  decltype(&nvrtcGetErrorString) error_string = nullptr;
  decltype(&nvrtcGetNumSupportedArchs) architecture_count = nullptr;
  decltype(&nvrtcGetSupportedArchs) architectures = nullptr;
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcDestroyProgram) destroy = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
  decltype(&nvrtcGetCUBINSize) cubin_size = nullptr;
  decltype(&nvrtcGetCUBIN) cubin = nullptr;
  decltype(&nvrtcGetPTXSize) ptx_size = nullptr;
  decltype(&nvrtcGetPTX) ptx = nullptr;
  /// Null before 12.8: compiles cannot be cancelled.
  nvrtcResult (*set_flow_callback)(nvrtcProgram, int (*)(void*, void*), void*) = nullptr;
};

Result<std::shared_ptr<const NvrtcLibrary>> NvrtcLibrary::locate(const NvrtcSearch& search) {
  std::shared_ptr<NvrtcLibrary> library(new NvrtcLibrary);
  auto majors = kMajors;
  std::ranges::stable_partition(
      majors, [&](int major) { return search.driver_major == 0 || major <= search.driver_major; });
  for (const int major : majors) {
    if (search.highest_major > 0 && major > search.highest_major) continue;
    const std::string name = fmt::format("libnvrtc.so.{}", major);
    for (const std::string& folder : search.folders) {
      std::error_code error;
      const std::string path = folder + "/" + name;
      if (!fs::exists(path, error)) continue;
      library->path_ = path;
      break;
    }
    if (library->path_.empty() && search.system_loader) {
      if (void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
        link_map* map = nullptr;
        if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr) {
          library->path_ = map->l_name;
        }
        // Stays open: load() needs it, and unloading a compiler is never safe.
      }
    }
    if (library->path_.empty()) continue;
    library->major_ = major;
    break;
  }
  if (library->path_.empty()) {
    return fail(ErrorCode::kCompile,
                "no run-time compiler found (libnvrtc.so.13 or libnvrtc.so.12)",
                fmt::format("{}", fmt::join(search.folders, ":")), kInstall);
  }
  const std::string id = build_id_of(library->path_);
  library->minor_ = find_builtins(library->path_, library->major_).minor;
  if (library->minor_ < 0 || id.empty()) {
    // Ask the library itself, which reports missing built-ins.
    HMMJIT_TRY(library->load());
  }
  std::error_code error;
  library->identity_ =
      fmt::format("nvrtc {}.{} {}", library->major_, library->minor_,
                  id.empty() ? fmt::format("size-{}", fs::file_size(library->path_, error)) : id);
  return std::shared_ptr<const NvrtcLibrary>(std::move(library));
}

NvrtcLibrary::~NvrtcLibrary() = default;  // stays loaded: see locate

Status NvrtcLibrary::load() const {
  const std::lock_guard guard(mutex_);
  if (functions_) return {};

  void* handle = dlopen(path_.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return fail(ErrorCode::kCompile,
                fmt::format("the run-time compiler cannot be loaded: {}", why ? why : "unknown"),
                path_, kInstall);
  }
  auto f = std::make_unique<Functions>();
  std::string missing;
  const auto resolve = [&](auto& pointer, const char* name, bool needed = true) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(dlsym(handle, name));
    if (pointer == nullptr && needed && missing.empty()) missing = name;
  };
  resolve(f->version, "nvrtcVersion");
  resolve(f->error_string, "nvrtcGetErrorString");
  resolve(f->architecture_count, "nvrtcGetNumSupportedArchs");
  resolve(f->architectures, "nvrtcGetSupportedArchs");
  resolve(f->create, "nvrtcCreateProgram");
  resolve(f->destroy, "nvrtcDestroyProgram");
  resolve(f->compile, "nvrtcCompileProgram");
  resolve(f->log_size, "nvrtcGetProgramLogSize");
  resolve(f->log, "nvrtcGetProgramLog");
  resolve(f->cubin_size, "nvrtcGetCUBINSize");
  resolve(f->cubin, "nvrtcGetCUBIN");
  resolve(f->ptx_size, "nvrtcGetPTXSize");
  resolve(f->ptx, "nvrtcGetPTX");
  resolve(f->set_flow_callback, "nvrtcSetFlowCallback", false);
  if (!missing.empty()) {
    return fail(ErrorCode::kCompile, fmt::format("this is not NVRTC: no {}", missing), path_,
                kInstall);
  }
  int major = 0, minor = 0;
  if (f->version(&major, &minor) != NVRTC_SUCCESS ||
      std::ranges::find(kMajors, major) == kMajors.end()) {
    return fail(ErrorCode::kCompile, fmt::format("unsupported NVRTC {}.{}", major, minor), path_,
                kInstall);
  }
  // NVRTC opens its built-ins by name, but the loader does not search NVRTC's folder. Load them
  // from there first: the loader then knows the name.
  const Builtins builtins = find_builtins(path_, major, minor);
  if (!builtins.path.empty()) dlopen(builtins.path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (builtins.path.empty() &&
      dlopen(fmt::format("libnvrtc-builtins.so.{}.{}", major, minor).c_str(),
             RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return fail(ErrorCode::kCompile,
                fmt::format("NVRTC {}.{} is here but its built-ins library "
                            "(libnvrtc-builtins.so.{}.{}) is not",
                            major, minor, major, minor),
                path_, "install the complete NVRTC package: both libraries belong in one folder");
  }
  if (minor_ < 0) const_cast<NvrtcLibrary*>(this)->minor_ = minor;  // still inside locate()
  functions_ = std::move(f);
  return {};
}

Result<std::vector<int>> NvrtcLibrary::queried_architectures() const {
  HMMJIT_TRY(load());
  int count = 0;
  std::vector<int> out;
  if (functions_->architecture_count(&count) == NVRTC_SUCCESS && count > 0) {
    out.resize(static_cast<std::size_t>(count));
    if (functions_->architectures(out.data()) != NVRTC_SUCCESS) out.clear();
  }
  if (out.empty()) {
    return fail(ErrorCode::kCompile, "NVRTC does not say which architectures it supports", path_);
  }
  std::ranges::sort(out);
  return out;
}

Result<NvrtcOutcome> NvrtcLibrary::compile(const std::string& source, const std::string& file_name,
                                           const std::vector<std::string>& options, ImageKind kind,
                                           const std::function<bool()>& cancelled) const {
  HMMJIT_TRY(load());
  const Functions& f = *functions_;
  NvrtcOutcome out;
  nvrtcProgram program = nullptr;
  nvrtcResult status = f.create(&program, source.c_str(), file_name.c_str(), 0, nullptr, nullptr);
  if (status != NVRTC_SUCCESS) {
    return fail(ErrorCode::kResources,
                fmt::format("the run-time compiler cannot start: {}", f.error_string(status)),
                file_name);
  }
  const AtEnd destroy{[&] { f.destroy(&program); }};

  struct Flow {
    const std::function<bool()>& cancelled;
    bool stopped = false;
    static int poll(void* self, void*) {
      auto& flow = *static_cast<Flow*>(self);
      if (flow.cancelled()) flow.stopped = true;
      return flow.stopped ? 1 : 0;
    }
  } flow{cancelled};
  if (cancelled && f.set_flow_callback != nullptr) {
    f.set_flow_callback(program, &Flow::poll, &flow);
  }

  std::vector<const char*> texts;
  texts.reserve(options.size());
  for (const std::string& option : options) texts.push_back(option.c_str());
  status = f.compile(program, static_cast<int>(texts.size()), texts.data());
  out.status = f.error_string(status);
  out.cancelled = flow.stopped;

  // NVRTC's sizes include the final NUL of texts.
  std::size_t size = 0;
  if (f.log_size(program, &size) == NVRTC_SUCCESS && size > 1) {
    out.log.resize(size);
    if (f.log(program, out.log.data()) != NVRTC_SUCCESS) out.log.clear();
    while (!out.log.empty() && (out.log.back() == '\0' || out.log.back() == '\n')) {
      out.log.pop_back();
    }
  }
  if (status == NVRTC_ERROR_OUT_OF_MEMORY) {
    return fail(ErrorCode::kResources, "out of memory in the run-time compiler", file_name);
  }
  if (status != NVRTC_SUCCESS || out.cancelled) return out;

  size = 0;
  const bool cubin = kind == ImageKind::kCubin;
  status = cubin ? f.cubin_size(program, &size) : f.ptx_size(program, &size);
  if (status == NVRTC_SUCCESS && size > 0) {
    out.image.resize(size);
    status = cubin ? f.cubin(program, out.image.data()) : f.ptx(program, out.image.data());
  }
  if (status != NVRTC_SUCCESS || out.image.empty()) {
    return fail(ErrorCode::kCompile,
                fmt::format("NVRTC compiled but gave no {}: {}", image_kind_name(kind),
                            f.error_string(status)),
                file_name);
  }
  if (!cubin && out.image.back() == '\0') out.image.pop_back();
  out.succeeded = true;
  return out;
}

#else  // no CUDA headers

struct NvrtcLibrary::Functions {};

Result<std::shared_ptr<const NvrtcLibrary>> NvrtcLibrary::locate(const NvrtcSearch&) {
  return fail(ErrorCode::kCompile, "this hmmjit was built without the CUDA headers", {},
              "rebuild with the CUDA toolkit's headers installed; plans, sources and the CPU "
              "search work as they are");
}
NvrtcLibrary::~NvrtcLibrary() = default;
Status NvrtcLibrary::load() const { return std::unexpected(locate({}).error()); }
Result<std::vector<int>> NvrtcLibrary::queried_architectures() const {
  return std::unexpected(locate({}).error());
}
Result<NvrtcOutcome> NvrtcLibrary::compile(const std::string&, const std::string&,
                                           const std::vector<std::string>&, ImageKind,
                                           const std::function<bool()>&) const {
  return std::unexpected(locate({}).error());
}

#endif

Result<std::vector<int>> NvrtcLibrary::architectures() const {
  for (const KnownVersion& known : kKnownVersions) {
    if (known.major == major_ && known.minor == minor_) {
      return std::vector<int>(known.architectures.begin(), known.architectures.end());
    }
  }
  return queried_architectures();
}

}  // namespace hmmjit::compile
