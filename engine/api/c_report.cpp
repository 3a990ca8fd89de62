// The C interface: reports.
#include "api/c_support.hpp"

using namespace hmmjit::c_interface;

namespace {

hmmjit::ReportOptions to_report_options(const hmmjit_report_options* given_options,
                                        hmmjit::SearchOptions& search) {
  hmmjit_report_options defaults{};
  defaults.alignments = 1;
  defaults.text_width = 120;
  const hmmjit_report_options o = read(given_options, defaults);
  search = to_options(o.search);
  hmmjit::ReportOptions out(search);
  const bool alignments = out.alignments;
  HMMJIT_COPY_MEMBERS(HMMJIT_REPORT_OPTIONS_MEMBERS, 1)(out, o);
  out.alignments = out.alignments && alignments;
  return out;
}

hmmjit::RunInfo to_run(const hmmjit_run_info* given_run) {
  const hmmjit_run_info r = read(given_run);
  hmmjit::RunInfo out;
  const std::string standard = out.program;
  HMMJIT_COPY_MEMBERS(HMMJIT_RUN_INFO_MEMBERS, 0)(out, r);
  if (r.program == nullptr) out.program = standard;
  return out;
}

}  // namespace

extern "C" {

int32_t hmmjit_report_create(int32_t kind, const char* path, const hmmjit_report_options* options,
                             hmmjit_report** out, hmmjit_error** error) {
  return run(error, [&] {
    hmmjit::SearchOptions search;
    const hmmjit::ReportOptions to = to_report_options(options, search);
    const auto report_kind =
        to_enum<hmmjit::ReportKind>(kind, HMMJIT_REPORT_DFAM_TABLE, "kind of report");
    give(out, path != nullptr ? hmmjit::Report::to_file(report_kind, path, to)
                              : hmmjit::Report(report_kind, to));
  });
}
int32_t hmmjit_main_report_header(const hmmjit_run_info* given_run,
                                  const hmmjit_report_options* options, hmmjit_text** out,
                                  hmmjit_error** error) {
  return run(error, [&] {
    hmmjit::SearchOptions search;
    const hmmjit::ReportOptions to = to_report_options(options, search);
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

}  // extern "C"
