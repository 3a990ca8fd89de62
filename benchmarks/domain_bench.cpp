// The domain stage on real data: filters a target file with one or more models, then times
// everything from the Forward filter on, part by part. With --rows it also prints the scores,
// coordinates and alignment lines, to be looked at or compared between versions; the comparison
// with hmmsearch is done on the whole program (tests/scenario).
//
//   domain_bench MODELS TARGETS [--rows] [--max] [--nonull2] [--seed N] [--batch N] [--repeat N]
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
#include "io/hmm_file.hpp"
#include "io/sequence_file.hpp"
#include "model/score_statistics.hpp"

namespace {

using namespace hmmjit;

struct Options {
  std::string models, targets;
  bool rows = false, max = false;
  domain::DomainOptions domain;
  std::size_t batch = 64;
  int repeat = 1;
};

struct Hit {
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
    const auto value = [&] {
      if (a + 1 >= argc) die(arg + " needs a value");
      return std::atoi(argv[++a]);
    };
    if (arg == "--rows") {
      o.rows = true;
    } else if (arg == "--max") {
      o.max = true;
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

// Core time: other work on the machine does not count.
double seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void print_rows(const SearchModel& model, std::vector<Hit>& hits, std::size_t Z) {
  const auto evalue = [&](double log_p, double n) { return flushed_exp(log_p) * n; };
  std::erase_if(hits,
                [&](const Hit& h) { return evalue(h.score.log_p, static_cast<double>(Z)) > 10.0; });
  const auto domZ = static_cast<double>(hits.size());
  for (const Hit& h : hits) {
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
          return flushed_exp(score.log_p) * static_cast<double>(block.size()) <= 10.0;
        };
        domain::score_targets_batch(tables, std::span(views).subspan(at, n), passes, o.domain,
                                    workspace, std::span(scores).subspan(at, n),
                                    std::span(results).subspan(at, n), wanted);
      }
      domain_time += seconds() - start;
      forwarded += survivors.size();
      std::vector<Hit> hits;
      for (std::size_t n = 0; n < views.size(); ++n) {
        if (!results[n]) continue;
        ++found;
        domains += results[n]->domains.size();
        hits.push_back({views[n], std::move(*results[n])});
      }
      if (o.rows && repeat == 0) print_rows(*model, hits, block.size());
    }
  }
  const domain::DomainTimes& t = workspace.times();
  fmt::print(stderr,
             "filters {:.3f} s; Forward of {} targets, domains of {}: {:.3f} s; {} "
             "targets, {} domains\n"
             "forward {:.3f} backward {:.3f} decoding {:.3f} ensemble {:.3f} clustering {:.3f} "
             "envelope {:.3f} alignment {:.3f}\n",
             filter_time, forwarded, defined, domain_time, found, domains, t.forward, t.backward,
             t.decoding, t.ensemble, t.clustering, t.envelope, t.alignment);
  return 0;
}
