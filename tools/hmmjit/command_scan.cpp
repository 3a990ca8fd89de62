// hmmjit scan: searches sequences with a file of profiles, and reports by sequence, like hmmscan.
#include "hmmjit/command.hpp"
#include "io/hmm_file.hpp"
#include "query_options.hpp"
#include "report/scan.hpp"
#include "report/scan_run.hpp"
#include "search_inputs.hpp"
#include "search_program.hpp"

namespace hmmjit::tools {
namespace {

ModelSource models_of(std::shared_ptr<const ResidentModels> models) {
  return [models = std::move(models),
          next = std::size_t{0}]() mutable -> Result<std::optional<Query>> {
    if (next == models->size()) return std::nullopt;
    return Query((*models)[next++]);
  };
}

Result<SearchStatistics> scan(ProgramRun& run) {
  ModelFile& file = run.model_file;
  const std::uint64_t bytes = file.bytes_total;
  std::uint64_t passes = 0;
  std::uint64_t count = 0;  // of the models, once they are read
  ScanRun scanned;
  scanned.search = run.search;
  if (run.kept_models != nullptr) {
    scanned.open_models = [&](const TargetBlock&) {
      return Result<SelectedModels>(
          {.models = run.kept_models->size(), .source = models_of(run.kept_models)});
    };
  } else {
    scanned.open_models = [&](const TargetBlock& batch) -> Result<SelectedModels> {
      if (run.devices.session.devices() == nullptr) {
        HMMJIT_ASSIGN(auto passed, filter_pressed(file.path, batch, run.search));
        if (passed) return *std::move(passed);
      }
      if (passes == 0) {
        HMMJIT_ASSIGN(const double found, count_models(file.path, run.search.thresholds, false));
        count = static_cast<std::uint64_t>(found);
      }
      HMMJIT_ASSIGN(HmmReader opened, HmmReader::open(file.path));
      opened.keep_subnormals();
      // For the progress display: each batch of sequences takes a pass over the models.
      const std::uint64_t before = bytes * passes++;
      file.bytes_total = bytes * passes;
      const ModelSource next = [&file, before,
                                reader = std::make_shared<HmmReader>(std::move(opened))] {
        auto model = reader->next();
        file.bytes_read = before + reader->offset();
        return model;
      };
      return SelectedModels{.models = count, .source = next};
    };
  }
  scanned.receive = [&](const ModelResult& result) -> Status {
    HMMJIT_TRY(run.writer.receive(result));
    return run.add_features ? for_each_model(result, run.add_features) : Status{};
  };
  return run_scan(run.devices.session, scanned, *run.targets, run.progress);
}

}  // namespace

CommandSpec scan_command() {
  SearchProgram program =
      scan_program("scan", "search sequence(s) against a profile database", "hmmscan");
  program.options = scan_option_table;
  program.search = scan;
  return command_of(program, "search sequence(s) against profiles, as hmmscan does");
}

}  // namespace hmmjit::tools
