// The C interface: models, targets, target databases.
#include "api/c_support.hpp"

using namespace hmmjit::c_interface;

extern "C" {

// ---- models ------------------------------------------------------------------------------------

int32_t hmmjit_models_create(hmmjit_models** out, hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Models()); });
}
int32_t hmmjit_models_from_file(const char* path, hmmjit_models** out, hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Models::from_file(&required(path, "path"))); });
}
int32_t hmmjit_models_load(const char* path, hmmjit_models** out, hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Models::load(&required(path, "path"))); });
}
int32_t hmmjit_models_from_memory(const void* bytes, size_t size, const char* name,
                                  hmmjit_models** out, hmmjit_error** error) {
  return run(error, [&] {
    give(out, hmmjit::Models::from_memory(view_of(bytes, size), name != nullptr ? name : "memory"));
  });
}
int32_t hmmjit_models_add(hmmjit_models* models, const hmmjit_models* from, size_t index,
                          hmmjit_error** error) {
  return run(error, [&] { object(models, "models").add(object(from, "from")[index]); });
}
int32_t hmmjit_models_add_with_query(hmmjit_models* models, const hmmjit_models* from, size_t index,
                                     const char* query_name, const char* query_accession,
                                     const char* query_description, hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::Model model = object(from, "from")[index];
    hmmjit_model_info info = model.info();
    info.query_name = query_name;
    info.query_accession = query_accession;
    info.query_description = query_description;
    object(models, "models").add(model.with(info));
  });
}
int32_t hmmjit_models_add_changed(hmmjit_models* models, const hmmjit_models* from, size_t index,
                                  const hmmjit_model_info* info, hmmjit_error** error) {
  return run(error, [&] {
    object(models, "models").add(object(from, "from")[index].with(required(info, "info")));
  });
}
int32_t hmmjit_models_write(const hmmjit_models* models, size_t index, int32_t binary,
                            hmmjit_text** out, hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::Model model = object(models, "models")[index];
    give(out, binary != 0 ? model.binary() : model.text());
  });
}
size_t hmmjit_models_count(const hmmjit_models* models) {
  return models != nullptr ? models->value.size() : 0;
}
int32_t hmmjit_models_get(const hmmjit_models* models, size_t index, hmmjit_model_info* info,
                          hmmjit_error** error) {
  return run(error, [&] { write(info, object(models, "models")[index].info()); });
}
int32_t hmmjit_models_for_each(const hmmjit_models* models,
                               int32_t (*visit)(void* context, const hmmjit_models* one),
                               void* context, hmmjit_error** error) {
  return run(error, [&] {
    required(visit, "visit");
    const hmmjit::Models own_models = object(models, "models");  // `visit` may free them
    own_models.for_each([&](const hmmjit::Model& model) {
      hmmjit_models one;
      one.value.add(model);
      return visit(context, &one) == 0;
    });
  });
}
void hmmjit_models_free(hmmjit_models* models) { delete models; }

// ---- targets -----------------------------------------------------------------------------------

int32_t hmmjit_targets_create(int32_t alphabet, hmmjit_targets** out, hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Targets(to_alphabet(alphabet))); });
}
int32_t hmmjit_targets_from_file(const char* path, const char* format, hmmjit_targets** out,
                                 hmmjit_error** error) {
  return run(error, [&] {
    give(out, hmmjit::Targets::from_file(&required(path, "path"), text_of(format)));
  });
}
int32_t hmmjit_targets_load(const char* path, int32_t alphabet, const char* format,
                            hmmjit_targets** out, hmmjit_error** error) {
  return run(error, [&] {
    give(out,
         hmmjit::Targets::load(&required(path, "path"), to_alphabet(alphabet), text_of(format)));
  });
}
int32_t hmmjit_targets_from_memory(const void* bytes, size_t size, int32_t alphabet,
                                   const char* format, const char* name, hmmjit_targets** out,
                                   hmmjit_error** error) {
  return run(error, [&] {
    give(out, hmmjit::Targets::from_memory(view_of(bytes, size), to_alphabet(alphabet),
                                           text_of(format), name != nullptr ? name : "memory"));
  });
}
int32_t hmmjit_targets_keep(const hmmjit_targets* targets, int32_t alphabet, hmmjit_targets** out,
                            hmmjit_error** error) {
  return run(error, [&] { give(out, object(targets, "targets").keep(to_alphabet(alphabet))); });
}
int32_t hmmjit_targets_add(hmmjit_targets* targets, const char* name, const char* accession,
                           const char* description, const char* residues, size_t length,
                           hmmjit_error** error) {
  return run(error, [&] {
    if (length > 0) required(residues, "residues");
    const std::string own[] = {text_of(name), text_of(accession), text_of(description)};
    object(targets, "targets").add({own[0], std::string_view(residues, length), own[1], own[2]});
  });
}
int32_t hmmjit_targets_append(hmmjit_targets* targets, const hmmjit_targets* from,
                              hmmjit_error** error) {
  return run(error, [&] { object(targets, "targets").add(object(from, "from")); });
}
uint64_t hmmjit_targets_count(const hmmjit_targets* targets) {
  return targets != nullptr ? targets->value.size() : 0;
}
uint64_t hmmjit_targets_residues(const hmmjit_targets* targets) {
  return targets != nullptr ? targets->value.residues() : 0;
}
int32_t hmmjit_targets_for_each(const hmmjit_targets* targets, int32_t alphabet, uint64_t first,
                                int32_t (*visit)(void* context, const hmmjit_target* target),
                                void* context, hmmjit_error** error) {
  return run(error, [&] {
    required(visit, "visit");
    const hmmjit::Targets own_targets = object(targets, "targets");  // as above
    own_targets.for_each(
        [&](std::uint64_t index, const hmmjit::Sequence& sequence) {
          const std::string texts[] = {std::string(sequence.name), std::string(sequence.accession),
                                       std::string(sequence.description),
                                       std::string(sequence.residues)};
          const hmmjit_target target{sizeof target,    texts[0].c_str(), texts[1].c_str(),
                                     texts[2].c_str(), texts[3].c_str(), index,
                                     texts[3].size()};
          return visit(context, &target) == 0;
        },
        first, to_alphabet(alphabet));
  });
}
void hmmjit_targets_free(hmmjit_targets* targets) { delete targets; }

// ---- target databases --------------------------------------------------------------------------

int32_t hmmjit_database_build(const hmmjit_targets* const* inputs, size_t count, int32_t alphabet,
                              const char* path, hmmjit_error** error) {
  return run(error, [&] {
    std::vector<hmmjit::Targets> all;
    for (size_t i = 0; i < count; ++i)
      all.push_back(required((&required(inputs, "inputs"))[i], "inputs").value);
    hmmjit::build_database(all, &required(path, "path"), to_alphabet(alphabet));
  });
}
int32_t hmmjit_database_get_info(const char* path, hmmjit_database_info* info, hmmjit_text** about,
                                 hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::DatabaseInfo d = hmmjit::database_info(&required(path, "path"));
    write(info, d);
    if (about != nullptr) give(about, d.about);
  });
}
int32_t hmmjit_database_verify(const char* path, hmmjit_error** error) {
  return run(error, [&] { hmmjit::verify_database(&required(path, "path")); });
}

}  // extern "C"
