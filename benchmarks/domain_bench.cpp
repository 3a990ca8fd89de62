// Benchmark of the domain stage on real data: filters a target file with one or more models, then
// times each step from the Forward filter on. --rows also prints scores, coordinates and alignment
// lines, to compare versions; tests/scenario compares the whole program with hmmsearch.
//
// With --device, the first GPU also scores the targets that pass, of all models (at most 32) in one
// launch, --copies times. Prints items, times and cells of its kernels and the planner's predicted
// rates; compares the results with the CPU's. --variant: uses this variant in stages that have it.
//
//   domain_bench MODELS TARGETS [--rows] [--max] [--nonull2] [--seed N] [--batch N] [--repeat N]
//                [--device] [--copies N] [--workspace MIB] [--variant NAME]
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/threads.hpp"
#include "cpu/filters.hpp"
#include "domain/domain.hpp"
#include "driver/driver.hpp"
#include "gpu/domain_stage.hpp"
#include "gpu/kernel_loader.hpp"
#include "gpu/kernel_source.hpp"
#include "io/hmm_file.hpp"
#include "io/sequence_file.hpp"
#include "model/score_statistics.hpp"

namespace {

using namespace hmmjit;

struct Options {
  std::string models, targets, variant;
  bool rows = false, max = false, device = false;
  domain::DomainOptions domain;
  std::size_t batch = 64;
  int repeat = 1, copies = 1;
  std::size_t workspace = gpu::DomainStage::kMostWorkspace;
};

struct ScoredHit {
  TargetView target;
  domain::TargetScore score;
};

[[noreturn]] void die(const std::string& message) {
  fmt::print(stderr, "{}\n", message);
  std::exit(2);
}

Options parse(int argc, char** argv) {
  Options o;
  std::vector<std::string> files;
  for (int a = 1; a < argc; ++a) {
    const std::string arg = argv[a];
    const auto text = [&] {
      if (a + 1 >= argc) die(arg + " needs a value");
      return argv[++a];
    };
    const auto value = [&] { return std::atoi(text()); };
    if (arg == "--rows") {
      o.rows = true;
    } else if (arg == "--max") {
      o.max = true;
    } else if (arg == "--device") {
      o.device = true;
    } else if (arg == "--copies") {
      o.copies = value();
    } else if (arg == "--workspace") {
      o.workspace = static_cast<std::size_t>(value()) << 20;
    } else if (arg == "--variant") {
      o.variant = text();
    } else if (arg == "--nonull2") {
      o.domain.null2 = false;
    } else if (arg == "--seed") {
      o.domain.seed = static_cast<std::uint32_t>(value());
    } else if (arg == "--batch") {
      o.batch = static_cast<std::size_t>(value());
    } else if (arg == "--repeat") {
      o.repeat = value();
    } else {
      files.push_back(arg);
    }
  }
  if (files.size() != 2) die("usage: domain_bench MODELS TARGETS [options]");
  o.models = files[0];
  o.targets = files[1];
  return o;
}

// CPU time, which excludes other work on the machine.
double seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void print_rows(const SearchModel& model, std::vector<ScoredHit>& hits, std::size_t Z) {
  const auto evalue = [](double log_p, double n) { return e_value(log_p, n); };
  std::erase_if(hits, [&](const ScoredHit& h) {
    return evalue(h.score.log_p, static_cast<double>(Z)) > 10.0;
  });
  const auto domZ = static_cast<double>(hits.size());
  for (const ScoredHit& h : hits) {
    const domain::TargetScore& s = h.score;
    fmt::print("T {} {:.2g} {:.1f} {:.1f} {:.1f} {} {} {} {} {}\n", h.target.name,
               evalue(s.log_p, static_cast<double>(Z)), s.bits, s.pre_bits - s.bits,
               s.expected_domains, s.regions, s.clustered, s.overlaps, s.envelopes,
               s.domains.size());
    for (const domain::Domain& d : s.domains) {
      if (evalue(d.log_p, domZ) > 10.0) continue;
      const double acc =
          static_cast<double>(d.accuracy_sum) /
          (1.0 + static_cast<double>(std::fabs(static_cast<float>(d.jenv - d.ienv))));
      fmt::print("D {} {} {:.2g} {:.2g} {:.1f} {:.1f} {} {} {} {} {} {} {:.2f}\n", h.target.name,
                 model.hmm.name, evalue(d.log_p, domZ), evalue(d.log_p, static_cast<double>(Z)),
                 d.bits, static_cast<double>(d.bias_nats) * 1.44269504088896341, d.hmm_from,
                 d.hmm_to, d.iali, d.jali, d.ienv, d.jenv, acc);
      for (const std::string* line : {&d.alignment.cs, &d.alignment.rf, &d.alignment.model,
                                      &d.alignment.match, &d.alignment.sequence, &d.alignment.pp}) {
        if (!line->empty()) fmt::print("A {}|\n", *line);
      }
    }
  }
}

template <typename T>
T value_or_die(Result<T> result) {
  if (!result) die(result.error().to_string());
  return *std::move(result);
}
void or_die(const Status& status) {
  if (!status) die(status.error().to_string());
}

// A model, the targets that passed its filters, and the CPU's results for them.
struct Passed {
  std::shared_ptr<const SearchModel> model;
  std::vector<TargetView> targets;
  std::vector<domain::TargetScore> scores;
};

class DeviceBench {
 public:
  explicit DeviceBench(const Options& options) : options_(options) {
    driver_ = driver::Driver::open();
    device_ = value_or_die(driver_->device(0));
    source_ = value_or_die(gpu::open_kernel_source(driver_->report().version / 1000, {}));
    origin_ = value_or_die(driver::Event::create(device_, true));
    const auto stream = value_or_die(driver::Stream::create(device_));
    or_die(origin_.record(stream));
    or_die(stream.synchronize());
    stage_ = value_or_die(gpu::DomainStage::create(
        device_, origin_, [](std::size_t, std::size_t) -> Status { return {}; },
        options.workspace));
  }

  void run(const std::vector<Passed>& passed) {
    int longest = 0;
    for (const Passed& p : passed) longest = std::max(longest, p.model->hmm.M);
    longest = plan::class_length(longest);
    const int codes = amino_alphabet().Kp;
    const gpu::DomainKernels kernels{kernel(plan::Stage::kParser, longest, codes),
                                     kernel(plan::Stage::kEnsemble, longest, codes),
                                     kernel(plan::Stage::kEnvelope, longest, codes)};
    for (int repeat = 0; repeat < options_.repeat; ++repeat) {
      std::vector<gpu::DomainRequest> requests;
      for (const Passed& p : passed) requests.push_back(request(p));
      std::vector<gpu::DomainRequest*> pointers;
      for (auto& r : requests) pointers.push_back(&r);
      const auto found = value_or_die(stage_->run(pointers, kernels, {.launch_seconds = 100}, {}));
      std::array<double, 3> cells{};
      std::array<std::size_t, 3> items{};
      std::size_t different = 0, left = 0;
      for (std::size_t m = 0; m < passed.size(); ++m)
        different += compare(passed[m], requests[m], &cells, &items, &left);
      double begin = found.begin;
      fmt::print(stderr, "longest {}:", longest);
      const gpu::ReadyKernel* const used[] = {&kernels.parser, &kernels.ensemble,
                                              &kernels.envelope};
      for (std::size_t s = 0; s < cells.size(); ++s) {
        fmt::print(stderr, " {} {} {:.2f} ms, {:.2f} Gcells/s ({} {:.2f}, {:.0f} at once);",
                   items[s], gpu::kDomainStages[s], found.end[s] - begin,
                   cells[s] / (found.end[s] - begin) * 1e-6, used[s]->candidate().variant->name,
                   1e-9 / used[s]->cell_seconds(*device_, {longest, codes}),
                   used[s]->candidate().expected.items_per_sm * device_->traits().sm_count);
        begin = found.end[s];
      }
      fmt::print(stderr, " {} left to the CPU, {} differ\n", left, different);
    }
  }

 private:
  gpu::ReadyKernel kernel(plan::Stage stage, int length, int codes) {
    auto plan =
        plan::make_plan(stage, length, codes, device_->traits(), {.variant = options_.variant});
    if (!plan) plan = value_or_die(plan::make_plan(stage, length, codes, device_->traits()));
    return value_or_die(gpu::KernelLoader(driver_).load(*plan, value_or_die(source_->get(*plan)),
                                                        *device_, *source_));
  }

  gpu::DomainRequest request(const Passed& passed) const {
    TargetBlock block;
    for (int copy = 0; copy < options_.copies; ++copy) {
      for (const TargetView& target : passed.targets) {
        block.begin_target(target.name, "", "");
        block.append(target.residues);
        block.end_target();
      }
    }
    const std::vector<gpu::BlockRef> blocks{{1, std::make_shared<TargetBlock>(std::move(block))}};
    auto packed = std::make_shared<gpu::PackedSegment>(gpu::pack_segment(blocks));
    auto uploader = value_or_die(gpu::Uploader::create(device_));
    gpu::DomainRequest out;
    out.model = passed.model;
    out.targets = value_or_die(gpu::DeviceTargets::create(device_, packed, uploader));
    for (std::uint32_t i = 0; i < packed->targets.size(); ++i) out.passed.push_back(i);
    return out;
  }

  // Number of targets of one model whose scores, domains and alignments differ from the CPU's.
  std::size_t compare(const Passed& passed, const gpu::DomainRequest& request,
                      std::array<double, 3>* cells, std::array<std::size_t, 3>* items,
                      std::size_t* left) {
    const FlushToZeroScope flush;
    const domain::ForwardTables tables(*request.model);
    const gpu::PackedSegment& packed = request.targets->packed();
    const double M = request.model->hmm.M;
    std::size_t different = 0;
    for (std::size_t n = 0; n < request.passed.size(); ++n) {
      const ParsedTarget* const parsed = request.parsed.empty() ? nullptr : request.parsed[n].get();
      const std::size_t at =
          packed.origins[packed.targets.original[request.passed[n]]].index % passed.targets.size();
      const TargetView target = passed.targets[at];
      if (parsed == nullptr) {
        ++*left;
        continue;
      }
      const auto count = [&](std::size_t stage, double rows) {
        (*cells)[stage] += rows * M;
        ++(*items)[stage];
      };
      count(0, target.length());
      for (const ParsedRegion& region : parsed->regions) {
        if (region.envelope) count(2, region.last - region.first + 1);
        if (!region.sampled) continue;
        count(1, region.last - region.first + 1);
        for (const auto& cluster : region.sampled->clusters)
          if (cluster.envelope) count(2, cluster.last - cluster.first + 1);
      }
      float nats = 0;
      std::optional<domain::TargetScore> score;
      domain::score_targets_batch(tables, {&target, 1}, [](std::size_t, float) { return true; },
                                  options_.domain, workspace_, {&nats, 1}, {&score, 1}, {},
                                  {&parsed, 1});
      different += !score || !(*score == passed.scores[at]);
    }
    return different;
  }

  Options options_;
  std::shared_ptr<driver::Driver> driver_;
  driver::DevicePtr device_;
  std::unique_ptr<gpu::KernelSource> source_;
  driver::Event origin_;
  std::unique_ptr<gpu::DomainStage> stage_;
  domain::Workspace workspace_;
};

}  // namespace

int main(int argc, char** argv) {
  const Options o = parse(argc, argv);
  auto models = HmmReader::open(o.models);
  if (!models) die(models.error().to_string());
  TargetBlock block;
  {
    auto reader = SequenceReader::open(o.targets, {amino_alphabet()});
    if (!reader) die(reader.error().to_string());
    for (;;) {
      auto more = reader->read_block(block, 1u << 30);
      if (!more) die(more.error().to_string());
      if (!*more) break;
    }
  }
  const FlushToZeroScope flush;
  domain::Workspace workspace;
  cpu::FilterScratch scratch;
  double filter_time = 0, domain_time = 0;
  std::size_t forwarded = 0, defined = 0, found = 0, domains = 0;
  std::vector<Passed> passed;
  for (;;) {
    auto hmm = models->next();
    if (!hmm) die(hmm.error().to_string());
    if (!*hmm) break;
    const auto model = make_search_model(std::move(**hmm));
    const cpu::FilterTables filters(*model);
    const domain::ForwardTables tables(*model);
    const Calibration& c = model->hmm.calibration;
    const auto gumbel = [](float nats, float mu, float lambda) {
      return gumbel_survival(static_cast<double>(nats_to_bits(nats)), static_cast<double>(mu),
                             static_cast<double>(lambda));
    };

    double start = seconds();
    std::vector<std::size_t> survivors;
    std::vector<float> filter_null;
    for (std::size_t n = 0; n < block.size(); ++n) {
      const auto residues = block[n].residues;
      const int L = block[n].length();
      if (L == 0) continue;
      const float null = null_score(L);
      if (o.max) {
        survivors.push_back(n);
        filter_null.push_back(null);
        continue;
      }
      const float msv = filters.msv_filter(residues, scratch);
      if (gumbel(msv - null, c.msv_mu, c.msv_lambda) > 0.02) continue;
      const float bias = filters.bias_filter(residues);
      const double p = gumbel(msv - bias, c.msv_mu, c.msv_lambda);
      if (p > 0.02) continue;
      if (p > 1e-3) {
        const float viterbi = filters.viterbi_filter(residues, scratch);
        if (gumbel(viterbi - bias, c.viterbi_mu, c.viterbi_lambda) > 1e-3) continue;
      }
      survivors.push_back(n);
      filter_null.push_back(bias);
    }
    filter_time += seconds() - start;

    for (int repeat = 0; repeat < o.repeat; ++repeat) {
      start = seconds();
      std::vector<TargetView> views;
      for (const std::size_t n : survivors) views.push_back(block[n]);
      std::vector<float> scores(views.size());
      std::vector<std::optional<domain::TargetScore>> results(views.size());
      for (std::size_t at = 0; at < views.size(); at += o.batch) {
        const std::size_t n = std::min(o.batch, views.size() - at);
        const auto passes = [&](std::size_t a, float nats) {
          const double bits = static_cast<double>(nats_to_bits(nats - filter_null[at + a]));
          const double p = exponential_survival(bits, static_cast<double>(c.forward_tau),
                                                static_cast<double>(c.forward_lambda));
          if (p > (o.max ? 1.0 : 1e-5)) return false;
          ++defined;
          return true;
        };
        const auto wanted = [&](std::size_t, const domain::TargetScore& score) {
          return o.device || e_value(score.log_p, static_cast<double>(block.size())) <= 10.0;
        };
        domain::score_targets_batch(tables, std::span(views).subspan(at, n), passes, o.domain,
                                    workspace, std::span(scores).subspan(at, n),
                                    std::span(results).subspan(at, n), wanted);
      }
      domain_time += seconds() - start;
      forwarded += survivors.size();
      std::vector<ScoredHit> hits;
      for (std::size_t n = 0; n < views.size(); ++n) {
        if (!results[n]) continue;
        ++found;
        domains += results[n]->domains.size();
        hits.push_back({views[n], std::move(*results[n])});
      }
      if (o.device && repeat == 0 && !hits.empty()) {
        Passed& p = passed.emplace_back();
        p.model = model;
        for (const ScoredHit& hit : hits) {
          p.targets.push_back(hit.target);
          p.scores.push_back(hit.score);
        }
      }
      if (o.rows && repeat == 0) print_rows(*model, hits, block.size());
    }
  }
  const domain::DomainTimes& t = workspace.times();
  fmt::print(stderr,
             "filters {:.3f} s; Forward of {} targets, domains of {}: {:.3f} s; {} "
             "targets, {} domains\n"
             "decoding {:.3f} s, clustering {:.3f} s, alignment {:.3f} s\n",
             filter_time, forwarded, defined, domain_time, found, domains, t.decoding.seconds,
             t.clustering.seconds, t.alignment.seconds);
  const auto print_pass = [](const char* name, const domain::DomainPass& pass) {
    fmt::print(stderr, "{} {:.3f} s, {:.3f} ns a cell\n", name, pass.seconds,
               pass.cells == 0 ? 0.0 : 1e9 * pass.seconds / static_cast<double>(pass.cells));
  };
  print_pass("forward", t.forward);
  print_pass("backward", t.backward);
  print_pass("ensemble", t.ensemble);
  print_pass("envelope", t.envelope);
  if (o.device) DeviceBench(o).run(passed);
  return 0;
}
