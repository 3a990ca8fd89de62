// The C interface: parts of a search.
#include "api/c_support.hpp"

using namespace hmmjit::c_interface;

namespace {

std::vector<std::string> to_paths(const char* const* files, std::size_t count) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < count; ++i)
    paths.emplace_back(&required((&required(files, "files"))[i], "files"));
  return paths;
}

}  // namespace

extern "C" {

int32_t hmmjit_search_part(const hmmjit_models* models, const char* database, uint32_t part,
                           uint32_t parts, const char* output, const hmmjit_search_options* options,
                           const hmmjit_callbacks* callbacks, hmmjit_part_info* info,
                           hmmjit_error** error) {
  return hmmjit_search_model_part(models, database, part, parts, 1, 1, output, options, callbacks,
                                  info, error);
}
int32_t hmmjit_search_model_part(const hmmjit_models* models, const char* database, uint32_t part,
                                 uint32_t parts, uint32_t model_part, uint32_t model_parts,
                                 const char* output, const hmmjit_search_options* options,
                                 const hmmjit_callbacks* callbacks, hmmjit_part_info* info,
                                 hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit_callbacks c = read(callbacks);
    if (info != nullptr) (void)read(info);  // fails before the search, which may take hours
    const hmmjit::PartInfo made =
        hmmjit::search_part(required(models, "models").value, &required(database, "database"),
                            {part, parts, model_part, model_parts}, &required(output, "output"),
                            read(options, hmmjit::SearchOptions()), to_callbacks(c));
    if (info != nullptr) write(info, made);
  });
}
int32_t hmmjit_merge_parts(const char* const* files, size_t count,
                           const hmmjit_callbacks* callbacks, hmmjit_results** out,
                           hmmjit_error** error) {
  return run(error, [&] {
    required(out, "the handle to fill");
    const hmmjit_callbacks c = read(callbacks);
    give_results(out, hmmjit::merge_parts(to_paths(files, count), to_callbacks(c)));
  });
}
int32_t hmmjit_join_parts(const char* const* files, size_t count, const char* output,
                          hmmjit_part_info* info, hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::PartInfo made =
        hmmjit::join_parts(to_paths(files, count), &required(output, "output"));
    if (info != nullptr) write(info, made);
  });
}
int32_t hmmjit_part_get_info(const char* file, hmmjit_part_info* info, hmmjit_text** settings,
                             hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::PartInfo part = hmmjit::part_info(&required(file, "file"));
    write(info, part);
    if (settings != nullptr) give(settings, part.settings);
  });
}
int32_t hmmjit_part_get_options(const char* file, hmmjit_search_options* options,
                                hmmjit_error** error) {
  return run(error, [&] { write(options, hmmjit::part_info(&required(file, "file")).options); });
}
int32_t hmmjit_part_verify(const char* file, hmmjit_error** error) {
  return run(error, [&] { hmmjit::verify_part(&required(file, "file")); });
}
int32_t hmmjit_parts_missing(const char* const* files, size_t count, hmmjit_text** out,
                             hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::missing_parts(to_paths(files, count))); });
}

}  // extern "C"
