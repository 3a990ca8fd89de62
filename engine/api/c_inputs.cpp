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
    const auto* data = static_cast<const char*>(bytes);
    if (size > 0) required(data, "bytes");
    give(out, hmmjit::Models::from_memory({data, size}, name != nullptr ? name : "memory"));
  });
}
int32_t hmmjit_models_add(hmmjit_models* models, const hmmjit_models* from, size_t index,
                          hmmjit_error** error) {
  return run(error,
             [&] { required(models, "models").value.add(required(from, "from").value[index]); });
}
int32_t hmmjit_models_add_with_query(hmmjit_models* models, const hmmjit_models* from, size_t index,
                                     const char* query_name, const char* query_accession,
                                     const char* query_description, hmmjit_error** error) {
  return run(error, [&] {
    required(models, "models")
        .value.add(required(from, "from")
                       .value[index]
                       .with_query({text_of(query_name), text_of(query_accession),
                                    text_of(query_description)}));
  });
}
int32_t hmmjit_models_add_changed(hmmjit_models* models, const hmmjit_models* from, size_t index,
                                  const hmmjit_model_info* info, hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit_model_info i = read(&required(info, "info"));
    const auto cutoff = [](double sequence, double domain) -> std::optional<hmmjit::ScoreCutoff> {
      if (std::isnan(sequence)) return std::nullopt;
      return hmmjit::ScoreCutoff{sequence, domain};
    };
    required(models, "models")
        .value.add(required(from, "from")
                       .value[index]
                       .with_names(text_of(i.name), text_of(i.accession), text_of(i.description))
                       .with_cutoffs(cutoff(i.gathering, i.gathering_domain),
                                     cutoff(i.trusted, i.trusted_domain),
                                     cutoff(i.noise, i.noise_domain))
                       .with_query({text_of(i.query_name), text_of(i.query_accession),
                                    text_of(i.query_description)}));
  });
}
int32_t hmmjit_models_write(const hmmjit_models* models, size_t index, int32_t binary,
                            hmmjit_text** out, hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::Model model = required(models, "models").value[index];
    give(out, binary != 0 ? model.binary() : model.text());
  });
}
size_t hmmjit_models_count(const hmmjit_models* models) {
  return models != nullptr ? models->value.size() : 0;
}
int32_t hmmjit_models_get(const hmmjit_models* models, size_t index, hmmjit_model_info* info,
                          hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::Model model = required(models, "models").value[index];
    hmmjit_model_info out{};
    out.name = model.name().c_str();
    out.accession = model.accession().c_str();
    out.description = model.description().c_str();
    out.consensus = model.consensus().c_str();
    out.length = model.length();
    out.alphabet = static_cast<int32_t>(model.alphabet());
    const auto cutoff = [](const std::optional<hmmjit::ScoreCutoff>& c, double& sequence,
                           double& domain) {
      sequence = c ? c->sequence : kNone;
      domain = c ? c->domain : kNone;
    };
    cutoff(model.gathering(), out.gathering, out.gathering_domain);
    cutoff(model.trusted(), out.trusted, out.trusted_domain);
    cutoff(model.noise(), out.noise, out.noise_domain);
    out.query_name = model.query().name.c_str();
    out.query_accession = model.query().accession.c_str();
    out.query_description = model.query().description.c_str();
    const hmmjit::Model::Parameters p = model.parameters();
    out.match = p.match.data();
    out.insert = p.insert.data();
    out.transition = p.transition.data();
    out.composition = p.composition.data();
    out.letters = p.letters;
    using Distribution = hmmjit::Model::Parameters::Distribution;
    const auto distribution = [](const std::optional<Distribution>& d, double& location,
                                 double& lambda) {
      location = d ? d->location : kNone;
      lambda = d ? d->lambda : kNone;
    };
    distribution(p.msv, out.msv_mu, out.msv_lambda);
    distribution(p.viterbi, out.viterbi_mu, out.viterbi_lambda);
    distribution(p.forward, out.forward_tau, out.forward_lambda);
    write(info, out);
  });
}
int32_t hmmjit_models_for_each(const hmmjit_models* models,
                               int32_t (*visit)(void* context, const hmmjit_models* one),
                               void* context, hmmjit_error** error) {
  return run(error, [&] {
    required(visit, "visit");
    const hmmjit::Models own_models = required(models, "models").value;  // `visit` may free them
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
    const auto* data = static_cast<const char*>(bytes);
    if (size > 0) required(data, "bytes");
    give(out, hmmjit::Targets::from_memory({data, size}, to_alphabet(alphabet), text_of(format),
                                           name != nullptr ? name : "memory"));
  });
}
int32_t hmmjit_targets_add(hmmjit_targets* targets, const char* name, const char* accession,
                           const char* description, const char* residues, size_t length,
                           hmmjit_error** error) {
  return run(error, [&] {
    if (length > 0) required(residues, "residues");
    const std::string own[] = {text_of(name), text_of(accession), text_of(description)};
    required(targets, "targets")
        .value.add({own[0], std::string_view(residues, length), own[1], own[2]});
  });
}
int32_t hmmjit_targets_append(hmmjit_targets* targets, const hmmjit_targets* from,
                              hmmjit_error** error) {
  return run(error, [&] { required(targets, "targets").value.add(required(from, "from").value); });
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
    const hmmjit::Targets own_targets = required(targets, "targets").value;  // as above
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
    hmmjit_database_info out{};
    HMMJIT_COPY_MEMBERS(HMMJIT_DATABASE_INFO_MEMBERS, 0)(out, d);
    write(info, out);
    if (about == nullptr) return;
    std::string lines = "program " + d.program + "\n";
    for (const std::string& source : d.sources) lines += "source " + source + "\n";
    give(about, std::move(lines));
  });
}
int32_t hmmjit_database_verify(const char* path, hmmjit_error** error) {
  return run(error, [&] { hmmjit::verify_database(&required(path, "path")); });
}

}  // extern "C"
