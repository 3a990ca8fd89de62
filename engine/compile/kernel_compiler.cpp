#include "compile/kernel_compiler.hpp"

#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <ranges>

#include "compile/diagnostics.hpp"
#include "core/json_object.hpp"
#include "core/output_file.hpp"
#include "core/read_only_file.hpp"

namespace hmmjit::compile {
namespace {

constexpr std::string_view kPlanAttachment = "plan";

Status write_file(const std::string& path, std::string_view text) {
  HMMJIT_ASSIGN(OutputFile file, OutputFile::create(path));
  file.write(text);
  return file.commit();
}

/// Removes ptxas's times from the log: equal kernels must have equal cache entries.
std::string without_times(std::string_view log) {
  std::string out;
  for (const auto part : std::views::split(log, '\n')) {
    const std::string_view line(part);
    if (line.find("Compile time = ") != std::string_view::npos) continue;
    if (!out.empty()) out += '\n';
    out += line;
  }
  return out;
}

cache::CacheKey make_key(const CompileJob& job, const NvrtcLibrary* compiler) {
  cache::CacheKey key;
  key.add("abi", std::string(kLaunchAbi))
      .add("kind", image_kind_name(job.target.kind))
      .add("target", job.target.architecture)
      .add("compiler", compiler != nullptr ? compiler->identity() : "")
      .add("options", fmt::format("{}", fmt::join(job.options, "\n")))
      .add("entry", job.source.entry_name)
      .add("file", job.source.file_name)
      .add("source", job.source.text);
  return key;
}

std::string candidate_text(const plan::Candidate& c, const plan::DeviceTraits& device) {
  std::string out;
  JsonObject json(out);
  json.text("stage", plan::stage_name(c.variant->stage));
  json.text("variant", c.variant->name);
  json.text("architecture", plan::architecture_name(device));
  plan::write_constants(json, c.constants);
  json.number("block_threads", c.expected.launch.block_threads);
  json.number("dynamic_shared_bytes", c.expected.launch.dynamic_shared_bytes);
  json.number("covered_length", c.expected.covered_length);
  json.number("registers", c.expected.registers);
  json.close();
  return out;
}

}  // namespace

DeveloperOptions DeveloperOptions::from_environment() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text != nullptr ? text : "");
  };
  return {value("HMMJIT_DUMP_DIR"), value("HMMJIT_OVERRIDE_DIR"), value("HMMJIT_LINE_INFO") == "1"};
}

Result<CompileJob> make_job(const render::TemplateLibrary& templates,
                            const plan::Candidate& candidate, const plan::DeviceTraits& device,
                            const NvrtcLibrary* compiler, const DeveloperOptions& developer) {
  CompileJob job;
  HMMJIT_ASSIGN(job.source, render::render(templates, candidate));
  // Without a compiler, only another machine's cubin for this architecture can help.
  std::vector<int> architectures{device.capability()};
  std::string identity = "no compiler";
  if (compiler != nullptr) {
    HMMJIT_ASSIGN(architectures, compiler->architectures());
    identity = fmt::format("NVRTC {}.{}", compiler->major(), compiler->minor());
  }
  HMMJIT_ASSIGN(job.target, choose_target(device, architectures, identity));
  constexpr int kNewest = 99;  // all options, as with a current compiler
  HMMJIT_ASSIGN(job.options,
                compile_options(job.target, compiler != nullptr ? compiler->major() : kNewest,
                                compiler != nullptr ? compiler->minor() : 0,
                                candidate.variant->compile_options));
  if (developer.line_info) job.options.emplace_back("-lineinfo");
  job.plan_json = candidate_text(candidate, device);
  job.key = make_key(job, compiler);
  job.name = fmt::format("{}.{}.{}.{}", plan::stage_name(candidate.variant->stage),
                         candidate.variant->name, job.target.architecture,
                         job.key.digest().hex().substr(0, 16));
  if (!developer.override_from.empty()) {
    const std::string base = developer.override_from + "/" + job.name;
    const char* suffix = image_kind_name(job.target.kind);
    if (auto image = read_whole_file(fmt::format("{}.{}", base, suffix));
        image && !image->empty()) {
      job.override_image = std::move(*image);
    } else if (auto text = read_whole_file(base + ".cu")) {
      job.source.text = std::move(*text);
      job.key = make_key(job, compiler);  // the key of an edited source has its content
    }
  }
  return job;
}

Result<KernelImage> run_job(const CompileJob& job, const NvrtcLibrary& compiler,
                            const std::function<bool()>& cancelled, std::string* log,
                            const DeveloperOptions& developer) {
  HMMJIT_ASSIGN(const NvrtcOutcome outcome,
                compiler.compile(job.source.text, job.source.file_name, job.options,
                                 job.target.kind, cancelled));
  if (log != nullptr) *log = outcome.log;
  if (outcome.cancelled) {
    return fail(ErrorCode::kInterrupted, "compilation cancelled", job.name);
  }
  if (!outcome.succeeded) {
    std::string remedy = "set HMMJIT_DUMP_DIR to keep the rendered source and the whole log";
    if (!developer.dump.empty()) {
      const Status dumped = dump_job(job, nullptr, outcome.log, developer.dump);
      remedy = dumped ? fmt::format("see {}/{}.cu and .log", developer.dump, job.name)
                      : dumped.error().to_string();
    }
    const std::size_t errors = errors_in(outcome.log).size();
    return fail(
        ErrorCode::kCompile,
        fmt::format("{}{} ({}; NVRTC {}.{}; options {})",
                    outcome.log.empty() ? outcome.status : first_error(outcome.log),
                    errors > 1 ? fmt::format(" and {} more", errors - 1) : "", outcome.status,
                    compiler.major(), compiler.minor(), fmt::join(job.options, " ")),
        job.name, remedy);
  }
  KernelImage image;
  image.kind = job.target.kind;
  image.architecture = job.target.architecture;
  image.entry_name = job.source.entry_name;
  image.bytes = outcome.image;
  image.log = without_times(outcome.log);
  if (image.kind == ImageKind::kCubin) {
    image.resources = read_ptxas_log(image.log, image.entry_name);
    if (image.resources.registers < 0)
      return fail(ErrorCode::kCompile,
                  fmt::format("the compiler's log states no resources of {}", image.entry_name),
                  job.name, "declare the kernel extern \"C\" __global__");
  }
  if (!developer.dump.empty()) (void)dump_job(job, &image, image.log, developer.dump);
  return image;
}

Result<std::string> ptx_of_job(const CompileJob& job, const NvrtcLibrary& compiler) {
  std::vector<std::string> options = job.options;
  // "sm_90" -> "compute_90"; the other options apply to PTX as well.
  constexpr std::string_view kArchitecture = "--gpu-architecture=";
  std::string architecture = job.target.architecture;
  if (architecture.starts_with("sm_")) architecture = "compute_" + architecture.substr(3);
  options.front() = std::string(kArchitecture) + architecture;
  std::erase(options, "--ptxas-options=-v");
  HMMJIT_ASSIGN(const NvrtcOutcome outcome,
                compiler.compile(job.source.text, job.source.file_name, options, ImageKind::kPtx));
  if (!outcome.succeeded) {
    return fail(ErrorCode::kCompile, first_error(outcome.log), job.name);
  }
  return outcome.image;
}

cache::Entry to_entry(const CompileJob& job, const KernelImage& image) {
  cache::Entry entry;
  entry.attributes = to_attributes(image.resources);
  entry.attributes["entry"] = image.entry_name;
  entry.attributes["kind"] = image_kind_name(image.kind);
  entry.attributes["target"] = image.architecture;
  entry.attributes["name"] = job.name;
  entry.log = image.log;
  entry.payload = image.bytes;
  entry.attachments[std::string(kPlanAttachment)] = job.plan_json;
  return entry;
}

Result<KernelImage> from_entry(const CompileJob& job, const cache::Entry& entry) {
  KernelImage image;
  image.kind = job.target.kind;
  image.architecture = job.target.architecture;
  image.entry_name = job.source.entry_name;
  image.bytes = entry.payload;
  image.resources = from_attributes(entry.attributes);
  image.log = entry.log;
  const auto kind = entry.attributes.find("kind");
  if (image.bytes.empty() || kind == entry.attributes.end() ||
      kind->second != image_kind_name(image.kind)) {
    return fail(ErrorCode::kCompile, "the cached entry holds no kernel of this kind", job.name);
  }
  return image;
}

Status dump_job(const CompileJob& job, const KernelImage* image, const std::string& log,
                const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return fail(ErrorCode::kOutput, error.message(), folder, "HMMJIT_DUMP_DIR must be writable");
  }
  const std::string base = folder + "/" + job.name;
  HMMJIT_TRY(write_file(base + ".cu", job.source.text));
  HMMJIT_TRY(write_file(base + ".json", job.plan_json + "\n"));
  HMMJIT_TRY(write_file(base + ".log", fmt::format("{}\n{}\n", fmt::join(job.options, " "), log)));
  if (image != nullptr) {
    HMMJIT_TRY(write_file(fmt::format("{}.{}", base, image_kind_name(image->kind)), image->bytes));
  }
  return {};
}

}  // namespace hmmjit::compile
