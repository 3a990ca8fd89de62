// Errors, versions, devices, compiler.
#include "api/convert.hpp"
#include "api/structs.hpp"
#include "cache/entry_format.hpp"
#include "compile/nvrtc_library.hpp"
#include "driver/driver.hpp"
#include "hmmjit/version.hpp"

namespace hmmjit::v0 {

struct Error::Text {
  hmmjit::Error parts;
  std::string line;
};

Error::Error(ErrorCode code, std::string message, std::string where, std::string remedy) {
  auto text = std::make_shared<Text>();
  text->parts = {static_cast<hmmjit::ErrorCode>(code), std::move(message), std::move(where),
                 std::move(remedy)};
  text->line = text->parts.to_string();
  text_ = std::move(text);
}
Error::~Error() = default;
Error::Error(const Error&) noexcept = default;
Error& Error::operator=(const Error&) noexcept = default;
const char* Error::what() const noexcept { return text_->line.c_str(); }
ErrorCode Error::code() const noexcept { return static_cast<ErrorCode>(text_->parts.code); }
const std::string& Error::message() const noexcept { return text_->parts.message; }
const std::string& Error::where() const noexcept { return text_->parts.where; }
const std::string& Error::remedy() const noexcept { return text_->parts.remedy; }

namespace {
const Error kOutOfMemory(ErrorCode::kResources, "out of memory");
}  // namespace
const Error& out_of_memory() noexcept { return kOutOfMemory; }

namespace {
// The program's options and their names in the library; longer options before their prefixes.
constexpr std::pair<std::string_view, std::string_view> kOptions[] = {
    {"search without --cut_*", "set missing_cutoffs (except for a scan), search without cutoffs,"},
    {"search with --device cpu", "search with device = cpu"},
    {"search with --noali", "search with keep_alignments = false"},
    {"without a prior (--pnone)", "with prior = none"},
    {" (hmmjit merge --part-file)", ""},
    {"hmmjit search --part-file", "search_part"},
    {"give the folder of --part-file, or the files themselves", "give the files of all parts"},
    {"use --enone or --eset", "set effective to another kind"},
    {"leave out --hand", "set columns to those with residues"},
    {"lower --symfrac", "lower least_occupied"},
    {"leave out --wgiven", "set weights to another kind"},
    {"--eset", "effective_number"},
    {"or a file with --mxfile", "or set matrix_file"},
    {"--EmN, --EvN, --EfN", "msv_targets, viterbi_targets, forward_targets"},
    {"--restrictdb_stkey", "first_target"},
    {"--w_length", "window_length"},
    {"--esigma", "total_entropy"},
    {"--ere", "relative_entropy"},
    {"--mem", "memory"},
    {"--cpu", "threads"},
    {"--mx", "matrix"}};

std::string with_library_names(std::string text) {
  if (text.find("--") == text.npos) return text;
  for (const auto& [option, member] : kOptions) {
    for (std::size_t at = 0; (at = text.find(option, at)) != text.npos; at += member.size())
      text.replace(at, option.size(), member);
  }
  return text;
}
}  // namespace

Error to_public(const hmmjit::Error& error) {
  // A path in `where` must not change.
  return {static_cast<ErrorCode>(error.code), error.message,
          error.where.starts_with("--") ? with_library_names(error.where) : error.where,
          with_library_names(error.remedy)};
}

void check_output(const std::string& path, std::span<const NamedFile> inputs) {
  if (path.empty() || path == "-")
    throw Error(ErrorCode::kUsage, "an output needs a file name", path,
                "give another one; /dev/stdout is standard output");
  const NamedFile output{"output", path};
  check(check_outputs({&output, 1}, inputs));
}

const char* error_code_name(ErrorCode code) noexcept {
  return hmmjit::error_code_name(static_cast<hmmjit::ErrorCode>(code));
}

Version version() noexcept {
  return {HMMJIT_VERSION_MAJOR, HMMJIT_VERSION_MINOR, HMMJIT_VERSION_PATCH, HMMJIT_VERSION,
          static_cast<int>(cache::kEntryFormatVersion)};
}

Device to_device(const plan::DeviceTraits& t, int ordinal) {
  Device d;
  d.name = t.name;
  d.ordinal = ordinal;
  d.shared_per_block = t.shared_per_block_limit;
  limits_of(d) = limits_of(t);
  return d;
}

plan::DeviceTraits to_traits(const Device& d) {
  plan::DeviceTraits t;
  t.name = d.name;
  t.shared_per_block_limit = d.shared_per_block;
  t.live = d.ordinal >= 0;
  limits_of(t) = limits_of(d);
  return t;
}

DriverInfo driver_info() {
  return guarded([] {
    const auto driver = driver::Driver::open();
    const driver::DriverReport& report = driver->report();
    return DriverInfo{driver->ready(), report.version, report.path, report.message, report.remedy};
  });
}

CompilerInfo compiler_info() {
  return guarded([] {
    CompilerInfo out;
    const auto compiler = compile::NvrtcLibrary::locate();
    if (!compiler) {
      out.message = compiler.error().to_string();
      return out;
    }
    out.major = (*compiler)->major();
    out.minor = (*compiler)->minor();
    out.path = (*compiler)->path();
    auto architectures = (*compiler)->architectures();
    if (!architectures) {
      out.message = architectures.error().to_string();
      return out;
    }
    out.found = true;
    out.architectures = *std::move(architectures);
    return out;
  });
}

std::vector<Device> devices() {
  return guarded([] {
    std::vector<Device> out;
    const auto driver = driver::Driver::open();
    for (int i = 0; i < driver->device_count(); ++i) {
      out.push_back(to_device(value(driver->traits(i)), i));
    }
    return out;
  });
}

std::vector<Device> device_table() {
  return guarded([] {
    std::vector<Device> out;
    for (const plan::DeviceTraits& traits : plan::device_table()) {
      out.push_back(to_device(traits, -1));
    }
    return out;
  });
}

Device find_device(std::string_view name) {
  return guarded([&] { return to_device(value(plan::find_device(name)), -1); });
}

}  // namespace hmmjit::v0
