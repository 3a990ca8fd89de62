// The C interface: reports.
#include "api/c_support.hpp"

using namespace hmmjit::c_interface;

extern "C" {

int32_t hmmjit_report_create(int32_t kind, const char* path, const hmmjit_report_options* options,
                             hmmjit_report** out, hmmjit_error** error) {
  return run(error, [&] {
    check_choice(kind, HMMJIT_REPORT_DFAM_TABLE, "kind of report");
    const auto report_kind = static_cast<hmmjit::ReportKind>(kind);
    const hmmjit_report_options to = read(options, hmmjit::ReportOptions());
    give(out, path != nullptr ? hmmjit::Report::to_file(report_kind, path, to)
                              : hmmjit::Report(report_kind, to));
  });
}
int32_t hmmjit_main_report_header(const hmmjit_run_info* given_run,
                                  const hmmjit_report_options* options, hmmjit_text** out,
                                  hmmjit_error** error) {
  return run(error, [&] {
    give(out, hmmjit::main_report_header(read(given_run), read(options, hmmjit::ReportOptions())));
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
  return run(error, [&] { required(report, "report").value.complete(read(given_run)); });
}
int32_t hmmjit_report_take_text(hmmjit_report* report, hmmjit_text** out, hmmjit_error** error) {
  return run(error, [&] { give(out, required(report, "report").value.take_text()); });
}
void hmmjit_report_free(hmmjit_report* report) { delete report; }

}  // extern "C"
