#include "options.hpp"

#include <charconv>
#include <cmath>
#include <functional>
#include <hmmjit/error.hpp>
#include <map>
#include <string_view>

namespace mrf {

const char* const kUsageText =
    R"(mrf: Markov-random-field segmentation of an image volume, on a CPU core or a GPU

usage: mrf [--input VOLUME.nii.gz] [options]

input
  --input FILE          NIfTI volume; without it a synthetic one of known truth is made
  --frame N             volume of a series, from 0
  --window LOW:HIGH     intensities to tell apart (default: least to greatest of the volume)
  --synthetic WxHxD     size of the synthetic volume (default 128x128x128)
  --noise S             its noise, in distances between class means (default 0.5)
  --seed N              its seed (default 1)
model
  --classes K           2 to 11 (default 4)
  --beta B              weight of a neighbour, 0 to 1000 (default 1)
  --neighbours N        6 or 26 (default 6)
  --start METHOD        kmeans or quantiles (default kmeans)
  --fixed-classes       do not estimate means and deviations again after each sweep
  --iterations N        sweeps at most (default 30)
  --tolerance F         converged when at most this share of voxels changed (default 0.0001)
device
  --device D            cpu, gpu or auto (default auto)
  --gpu N               number of the GPU (default 0)
  --compare             run on both and fail unless every label is equal
  --plan                print the plan of the kernels
output
  --labels FILE         classes as NIfTI, .nii or .nii.gz
  --slices DIR          slices as PNG
  --slice-step N        distance of axial slices (default: about eight of them)
  --stats FILE          what is printed, as JSON; "-" for standard output
  --write-input FILE    the quantised volume as NIfTI
  --help
)";

namespace {

using hmmjit::Error;
using hmmjit::ErrorCode;

[[noreturn]] void usage(const std::string& what, const std::string& where) {
  throw Error(ErrorCode::kUsage, what, where, "see mrf --help");
}

std::string quoted(std::string_view text) {
  std::string out(1, '\'');
  out.append(text);
  out += '\'';
  return out;
}

template <typename T>
T number(std::string_view text, const std::string& option, T low, T high) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() ||
      !(value >= low && value <= high)) {
    usage(quoted(text) + " is not a number in the range of the option", option);
  }
  return value;
}

std::pair<std::string_view, std::string_view> split(std::string_view text, char separator,
                                                    const std::string& option) {
  const auto at = text.find(separator);
  if (at == text.npos) {
    usage(quoted(text) + " has no " + quoted({&separator, 1}), option);
  }
  return {text.substr(0, at), text.substr(at + 1)};
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options out;
  Settings& s = out.settings;
  using Handler = std::function<void(const std::string& name, std::string_view value)>;
  const std::map<std::string_view, Handler> valued = {
      {"--input", [&](auto&, auto v) { out.input = v; }},
      {"--frame", [&](auto& o, auto v) { out.frame = number(v, o, 0, 1 << 30); }},
      {"--window",
       [&](auto& o, auto v) {
         const auto [low, high] = split(v, ':', o);
         out.window = {number(low, o, -1e30, 1e30), number(high, o, -1e30, 1e30)};
         if (!(out.window->first < out.window->second)) usage("LOW must be below HIGH", o);
       }},
      {"--synthetic",
       [&](auto& o, auto v) {
         const auto [w, rest] = split(v, 'x', o);
         const auto [h, d] = split(rest, 'x', o);
         out.synthetic = {number(w, o, 1, 4096), number(h, o, 1, 4096), number(d, o, 1, 4096)};
       }},
      {"--noise", [&](auto& o, auto v) { out.noise = number(v, o, 0.0, 100.0); }},
      {"--seed",
       [&](auto& o, auto v) { out.seed = number(v, o, std::uint64_t{0}, ~std::uint64_t{0}); }},
      {"--classes",
       [&](auto& o, auto v) { s.classes = number<int>(v, o, 2, mrf_device::kMaxClasses); }},
      {"--beta", [&](auto& o, auto v) { s.beta = number(v, o, 0.0, 1000.0); }},
      {"--neighbours",
       [&](auto& o, auto v) {
         s.neighbours = number(v, o, 6, 26);
         if (s.neighbours != 6 && s.neighbours != 26) usage("neighbours are 6 or 26", o);
       }},
      {"--start",
       [&](auto& o, auto v) {
         if (v != "kmeans" && v != "quantiles") usage("start is kmeans or quantiles", o);
         s.start = v == "kmeans" ? Start::kKMeans : Start::kQuantiles;
       }},
      {"--iterations", [&](auto& o, auto v) { s.iterations = number(v, o, 0, 1'000'000); }},
      {"--tolerance", [&](auto& o, auto v) { s.tolerance = number(v, o, 0.0, 1.0); }},
      {"--device",
       [&](auto& o, auto v) {
         if (v != "cpu" && v != "gpu" && v != "auto") usage("device is cpu, gpu or auto", o);
         out.device = v == "cpu"   ? DeviceChoice::kCpu
                      : v == "gpu" ? DeviceChoice::kGpu
                                   : DeviceChoice::kAuto;
       }},
      {"--gpu", [&](auto& o, auto v) { out.gpu = number(v, o, 0, 1024); }},
      {"--labels", [&](auto&, auto v) { out.labels = v; }},
      {"--slices", [&](auto&, auto v) { out.slices = v; }},
      {"--slice-step", [&](auto& o, auto v) { out.slice_step = number(v, o, 1, 1 << 24); }},
      {"--stats", [&](auto&, auto v) { out.stats = v; }},
      {"--write-input", [&](auto&, auto v) { out.write_input = v; }},
  };
  const std::map<std::string_view, bool*> flags = {{"--fixed-classes", &s.fixed_classes},
                                                   {"--compare", &out.compare},
                                                   {"--plan", &out.show_plan},
                                                   {"--help", &out.help}};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (const auto flag = flags.find(argument); flag != flags.end()) {
      *flag->second = true;
      continue;
    }
    // "--option value" and "--option=value".
    const auto equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const auto handler = valued.find(name);
    if (handler == valued.end()) usage("unknown argument", argument);
    std::string_view value;
    if (equals != argument.npos) {
      value = std::string_view(argument).substr(equals + 1);
    } else if (++i < argc) {
      value = argv[i];
    } else {
      usage("a value is missing", name);
    }
    if (value.empty()) usage("the value is empty", name);
    handler->second(name, value);
  }
  return out;
}

}  // namespace mrf
