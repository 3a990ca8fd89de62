// The C interface: the engine, for hosts with their own kernels.
#include "api/c_support.hpp"

using namespace hmmjit::c_interface;

struct hmmjit_offer {
  std::vector<hmmjit::Configuration> configurations;
  std::string rejection;
  bool rejected = false;
};
struct hmmjit_engine : Handle<hmmjit::Engine> {};
struct hmmjit_plan : Handle<hmmjit::Plan> {};
struct hmmjit_image : Handle<hmmjit::KernelImage> {};
struct hmmjit_gpu : Handle<hmmjit::Gpu> {};
struct hmmjit_stream : Handle<hmmjit::Stream> {};
struct hmmjit_event : Handle<hmmjit::Event> {};
struct hmmjit_buffer : Handle<hmmjit::Buffer> {};
struct hmmjit_kernel : Handle<hmmjit::Kernel> {};

namespace {

hmmjit::Constants to_constants(const hmmjit_constant* constants, std::size_t count) {
  hmmjit::Constants out;
  for (std::size_t i = 0; i < count; ++i) {
    const hmmjit_constant& c = (&required(constants, "constants"))[i];
    out.push_back({text_of(c.name), c.value});
  }
  return out;
}

hmmjit::Problem to_problem(const hmmjit_problem* given_problem) {
  const hmmjit_problem p = read(&required(given_problem, "problem"));
  return {text_of(p.family), to_constants(p.parameters, p.parameter_count)};
}

hmmjit::KernelVariant to_variant(const hmmjit_variant* given_variant) {
  const hmmjit_variant v = read(given_variant);
  hmmjit::KernelVariant out;
  out.name = text_of(v.name);
  out.family = text_of(v.family);
  out.template_file = text_of(v.template_file);
  out.entry_name = text_of(v.entry_name);
  out.competes = v.by_name_only == 0;
  for (std::size_t i = 0; i < v.compile_option_count; ++i)
    out.compile_options.push_back(text_of((&required(v.compile_options, "compile_options"))[i]));
  if (v.configurations == nullptr) return out;  // the engine refuses it
  // The C callback serves both C++ functions. It is pure: it may be called twice.
  const auto ask = [v](const hmmjit::Problem& problem, const hmmjit::Device& device) {
    std::vector<hmmjit_constant> parameters;
    for (const hmmjit::Constant& c : problem.parameters)
      parameters.push_back({c.name.c_str(), c.value});
    const hmmjit_problem p{sizeof p, problem.family.c_str(), parameters.data(), parameters.size()};
    const hmmjit_device d = to_c(device);
    hmmjit_offer offer;
    v.configurations(v.context, &p, &d, &offer);
    return offer;
  };
  out.accepts = [ask](const hmmjit::Problem& problem, const hmmjit::Device& device) {
    hmmjit_offer offer = ask(problem, device);
    return hmmjit::Verdict{!offer.rejected, std::move(offer.rejection)};
  };
  out.configurations = [ask](const hmmjit::Problem& problem, const hmmjit::Device& device) {
    return ask(problem, device).configurations;
  };
  return out;
}

}  // namespace

extern "C" {

// ---- engine: own kernels -----------------------------------------------------------------------

int32_t hmmjit_offer_add(hmmjit_offer* offer, const hmmjit_configuration* configuration,
                         hmmjit_error** error) {
  return run(error, [&] {
    hmmjit_configuration defaults{};
    defaults.threads_x = 32;
    defaults.threads_y = defaults.threads_z = 1;
    defaults.registers = 255;
    defaults.items_per_clock_per_sm = 1;
    const hmmjit_configuration c = read(&required(configuration, "configuration"), defaults);
    hmmjit::Configuration out;
    out.constants = to_constants(c.constants, c.constant_count);
    out.launch = {c.threads_x, c.threads_y, c.threads_z, c.dynamic_shared_bytes};
    out.expected = {c.registers, c.local_bytes, c.items_per_clock_per_sm,
                    text_of(c.binding_resource)};
    required(offer, "offer").configurations.push_back(std::move(out));
  });
}
void hmmjit_offer_reject(hmmjit_offer* offer, const char* reason) {
  (void)run(nullptr, [&] {
    required(offer, "offer").rejected = true;
    offer->rejection = text_of(reason);
  });
}

int32_t hmmjit_engine_create(const hmmjit_engine_settings* settings, hmmjit_engine** out,
                             hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit_engine_settings s = read(settings);
    hmmjit::EngineSettings to;
    for (size_t i = 0; i < s.template_count; ++i) {
      const hmmjit_template& t = (&required(s.templates, "templates"))[i];
      to.templates.push_back({text_of(t.path), text_of(t.text)});
    }
    for (size_t i = 0; i < s.variant_count; ++i) {
      const hmmjit_variant& first = required(s.variants, "variants");
      to.variants.push_back(to_variant(element(&first, i, first.size)));
    }
    if (s.cache != nullptr) to.cache = s.cache->value;
    to.compile_threads = s.compile_threads;
    to.highest_compiler_major = s.highest_compiler_major;
    give(out, hmmjit::Engine(std::move(to)));
  });
}
void hmmjit_engine_free(hmmjit_engine* engine) { delete engine; }

int32_t hmmjit_engine_plan(const hmmjit_engine* engine, const hmmjit_problem* problem,
                           const hmmjit_device* device, const hmmjit_plan_options* options,
                           hmmjit_plan** out, hmmjit_error** error) {
  return run(error, [&] {
    give(out,
         object(engine, "engine")
             .plan(to_problem(problem), to_cpp(read(&required(device, "device"))), read(options)));
  });
}
int32_t hmmjit_engine_plan_stage(const hmmjit_engine* engine, const char* stage,
                                 int32_t model_length, const hmmjit_device* device,
                                 const hmmjit_plan_options* options, hmmjit_plan** out,
                                 hmmjit_error** error) {
  return run(error, [&] {
    give(out, object(engine, "engine")
                  .plan_stage(hmmjit::find_stage(text_of(stage)), model_length,
                              to_cpp(read(&required(device, "device"))), read(options)));
  });
}
int32_t hmmjit_engine_render(const hmmjit_engine* engine, const hmmjit_plan* plan,
                             hmmjit_text** out, hmmjit_error** error) {
  return run(error, [&] { give(out, object(engine, "engine").render(object(plan, "plan")).text); });
}
int32_t hmmjit_engine_compile(const hmmjit_engine* engine, const hmmjit_plan* plan,
                              hmmjit_image** out, hmmjit_error** error) {
  return run(error, [&] {
    hmmjit::Engine handle = object(engine, "engine");  // shares the engine
    give(out, handle.compile(object(plan, "plan")));
  });
}
void hmmjit_engine_cancel(const hmmjit_engine* engine) {
  if (engine == nullptr) return;
  (void)run(nullptr, [&] { hmmjit::Engine(engine->value).cancel(); });
}

const char* hmmjit_plan_text(const hmmjit_plan* plan) {
  return plan != nullptr ? plan->value.info().text.c_str() : "";
}
const char* hmmjit_plan_json(const hmmjit_plan* plan) {
  return plan != nullptr ? plan->value.info().json.c_str() : "";
}
const char* hmmjit_plan_variant(const hmmjit_plan* plan) {
  return plan != nullptr ? plan->value.info().chosen.variant.c_str() : "";
}
int32_t hmmjit_plan_constant(const hmmjit_plan* plan, const char* name, int64_t* value,
                             hmmjit_error** error) {
  return run(error, [&] {
    required(value, "value") =
        hmmjit::constant(object(plan, "plan").info().chosen.constants, &required(name, "name"));
  });
}
void hmmjit_plan_free(hmmjit_plan* plan) { delete plan; }

int32_t hmmjit_image_get_info(const hmmjit_image* image, hmmjit_image_info* info,
                              hmmjit_error** error) {
  return run(error, [&] { write(info, object(image, "image").info()); });
}
void hmmjit_image_free(hmmjit_image* image) { delete image; }

// ---- engine: launches --------------------------------------------------------------------------

int32_t hmmjit_gpu_open(int32_t ordinal, hmmjit_gpu** out, hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Gpu(ordinal)); });
}
int32_t hmmjit_gpu_get_device(const hmmjit_gpu* gpu, hmmjit_device* device, hmmjit_error** error) {
  return run(error, [&] { write(device, to_c(object(gpu, "gpu").device())); });
}
int32_t hmmjit_gpu_memory(const hmmjit_gpu* gpu, uint64_t* free_bytes, uint64_t* total_bytes,
                          hmmjit_error** error) {
  return run(error, [&] {
    const auto memory = object(gpu, "gpu").memory();
    if (free_bytes != nullptr) *free_bytes = memory.free;
    if (total_bytes != nullptr) *total_bytes = memory.total;
  });
}
int32_t hmmjit_gpu_synchronize(const hmmjit_gpu* gpu, hmmjit_error** error) {
  return run(error, [&] { object(gpu, "gpu").synchronize(); });
}
void hmmjit_gpu_free(hmmjit_gpu* gpu) { delete gpu; }

int32_t hmmjit_stream_create(const hmmjit_gpu* gpu, hmmjit_stream** out, hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Stream(object(gpu, "gpu"))); });
}
int32_t hmmjit_stream_synchronize(const hmmjit_stream* stream, hmmjit_error** error) {
  return run(error, [&] { object(stream, "stream").synchronize(); });
}
int32_t hmmjit_stream_finished(const hmmjit_stream* stream, int32_t* finished,
                               hmmjit_error** error) {
  return run(error, [&] { required(finished, "finished") = object(stream, "stream").finished(); });
}
int32_t hmmjit_stream_from_native(const hmmjit_gpu* gpu, void* native, hmmjit_stream** out,
                                  hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Stream::from_native(object(gpu, "gpu"), native)); });
}
void* hmmjit_stream_native(const hmmjit_stream* stream) {
  return stream != nullptr ? stream->value.native() : nullptr;
}
void hmmjit_stream_free(hmmjit_stream* stream) { delete stream; }

int32_t hmmjit_event_create(const hmmjit_gpu* gpu, int32_t timing, hmmjit_event** out,
                            hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Event(object(gpu, "gpu"), timing != 0)); });
}
int32_t hmmjit_event_record(hmmjit_event* event, const hmmjit_stream* stream,
                            hmmjit_error** error) {
  return run(error, [&] { object(event, "event").record(object(stream, "stream")); });
}
int32_t hmmjit_event_synchronize(const hmmjit_event* event, hmmjit_error** error) {
  return run(error, [&] { object(event, "event").synchronize(); });
}
int32_t hmmjit_event_finished(const hmmjit_event* event, int32_t* finished, hmmjit_error** error) {
  return run(error, [&] { required(finished, "finished") = object(event, "event").finished(); });
}
int32_t hmmjit_event_wait_in(const hmmjit_event* event, const hmmjit_stream* stream,
                             hmmjit_error** error) {
  return run(error, [&] { object(event, "event").wait_in(object(stream, "stream")); });
}
int32_t hmmjit_event_milliseconds(const hmmjit_event* start, const hmmjit_event* end,
                                  float* milliseconds, hmmjit_error** error) {
  return run(error, [&] {
    required(milliseconds, "milliseconds") =
        hmmjit::Event::milliseconds(object(start, "start"), object(end, "end"));
  });
}
void* hmmjit_event_native(const hmmjit_event* event) {
  return event != nullptr ? event->value.native() : nullptr;
}
void hmmjit_event_free(hmmjit_event* event) { delete event; }

int32_t hmmjit_buffer_create(const hmmjit_gpu* gpu, size_t bytes, hmmjit_buffer** out,
                             hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Buffer(object(gpu, "gpu"), bytes)); });
}
uint64_t hmmjit_buffer_address(const hmmjit_buffer* buffer) {
  return buffer != nullptr ? buffer->value.address() : 0;
}
int32_t hmmjit_buffer_upload(hmmjit_buffer* buffer, const hmmjit_stream* stream, const void* from,
                             size_t bytes, size_t offset, hmmjit_error** error) {
  return run(error, [&] {
    object(buffer, "buffer").upload(object(stream, "stream"), from, bytes, offset);
  });
}
int32_t hmmjit_buffer_download(const hmmjit_buffer* buffer, const hmmjit_stream* stream, void* to,
                               size_t bytes, size_t offset, hmmjit_error** error) {
  return run(error, [&] {
    object(buffer, "buffer").download(object(stream, "stream"), to, bytes, offset);
  });
}
int32_t hmmjit_buffer_fill(hmmjit_buffer* buffer, const hmmjit_stream* stream, uint8_t value,
                           size_t bytes, size_t offset, hmmjit_error** error) {
  return run(error, [&] {
    object(buffer, "buffer").fill(object(stream, "stream"), value, bytes, offset);
  });
}
void hmmjit_buffer_free(hmmjit_buffer* buffer) { delete buffer; }

int32_t hmmjit_engine_load(const hmmjit_engine* engine, const hmmjit_plan* plan,
                           const hmmjit_gpu* gpu, hmmjit_kernel** out, hmmjit_error** error) {
  return run(error, [&] {
    hmmjit::Engine handle = object(engine, "engine");
    give(out, handle.load(object(plan, "plan"), object(gpu, "gpu")));
  });
}
void* hmmjit_kernel_native(const hmmjit_kernel* kernel) {
  return kernel != nullptr ? kernel->value.native() : nullptr;
}
uint32_t hmmjit_kernel_resident_blocks(const hmmjit_kernel* kernel) {
  return kernel != nullptr ? kernel->value.resident_blocks() : 0;
}
int32_t hmmjit_kernel_launch(const hmmjit_kernel* kernel, const hmmjit_stream* stream,
                             uint32_t blocks_x, uint32_t blocks_y, uint32_t blocks_z,
                             const void* parameters, size_t parameter_bytes, hmmjit_error** error) {
  return run(error, [&] {
    object(kernel, "kernel")
        .launch_bytes(object(stream, "stream"), {blocks_x, blocks_y, blocks_z}, parameters,
                      parameter_bytes);
  });
}
void hmmjit_kernel_free(hmmjit_kernel* kernel) { delete kernel; }

}  // extern "C"
