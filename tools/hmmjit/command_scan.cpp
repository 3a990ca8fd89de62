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
  ScanRun scanned;
  scanned.search = run.search;
  if (run.kept_models != nullptr) {
    scanned.count_models = [&] {
      return Result<double>(static_cast<double>(run.kept_models->size()));
    };
    scanned.open_models = [&] { return models_of(run.kept_models); };
  } else {
    scanned.count_models = [&] { return count_models(file.path, run.search.thresholds, false); };
    scanned.filter = [&](const TargetBlock& batch) {
      return filter_pressed(file.path, batch, run.search);
    };
    scanned.open_models = [&]() -> Result<ModelSource> {
      HMMJIT_ASSIGN(HmmReader opened, HmmReader::open(file.path));
      // For the progress display: each batch of sequences takes a pass over the models.
      const std::uint64_t before = bytes * passes++;
      const auto read = static_cast<double>(run.targets->bytes_read());
      const auto all = static_cast<double>(run.targets->bytes_total());
      file.bytes_total =
          read > 0 ? static_cast<std::uint64_t>(static_cast<double>(bytes * passes) * all / read)
                   : 0;
      return [&file, before, reader = std::make_shared<HmmReader>(std::move(opened))] {
        auto model = reader->next();
        file.bytes_read = before + reader->offset();
        return model;
      };
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
