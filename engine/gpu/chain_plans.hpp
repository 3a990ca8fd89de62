// The kernels of a chain of filters, and the model lengths that they are made for.
//
// A search plans coarsely, so that a library of models needs few compiles: the stages after SSV
// see few targets and are bound by latency, and a first SSV kernel is soon replaced by a closer
// one.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "plan/plan.hpp"

namespace hmmjit::gpu {

/// The kernels of a chain. kFineSsv, made for a closer model length, replaces kSsv once it is
/// ready; kExactViterbi takes the targets that kViterbi flags, or all of them.
enum class Link {
  kSsv,
  kMsv,
  kBias,
  kViterbi,
  kExactViterbi,
  kForward,
  kGate,
  kParser,
  kEnsemble,
  kEnvelope,
  kFineSsv
};
inline constexpr std::size_t kLinks = 11;
/// The links after the chain of filters.
inline constexpr std::array kDomainLinks{Link::kParser, Link::kEnsemble, Link::kEnvelope};
/// The one of a link, if there is something for each.
template <typename T>
const T& of_link(const std::array<T, kLinks>& all, Link link) {
  return all[static_cast<std::size_t>(link)];
}

plan::Stage link_stage(Link link);
/// Whether a chain of filters uses the kernel, rather than the domain stage after it.
bool is_filter(Link link);
/// How urgently a search asks for the kernel of a model of that length, 0 last. The kernels that
/// decide most targets of a class come before those of the next, usual lengths first.
int link_priority(Link link, int model_length);
/// Whether a chain must wait for this kernel: a chain of SSV alone would leave a third of the
/// filters' work to the CPU. Not the kernels after Viterbi and MSV, which see few targets, nor
/// those of the domain stage, whose targets can wait.
bool link_decides(Link link);
/// The model lengths to plan a link's kernel for, in this order until one has a plan: each at least
/// `model_length`, the last the model's own and those before it shared by many models; only 1 where
/// one kernel serves all. kFineSsv: steps of a third to a half, worth a second compile for the
/// stage that does nearly all cells. Kernels of the domain stage are shared by models whose rows
/// leave room for equally many targets in a warp on this device.
std::vector<int> link_lengths(Link link, int model_length, int alphabet_codes,
                              const plan::DeviceTraits& device);
/// The plan of a link's kernel for exactly that length, one of link_lengths().
Result<plan::Plan> link_plan(Link link, int length, int alphabet_codes,
                             const plan::DeviceTraits& device, const plan::TuningTable* tuned);

/// The kernels that a search of such a model uses once all are ready, including SSV of the
/// model's own size class. Links without a kernel for the device are left out; the CPU does their
/// stages.
std::vector<plan::Plan> search_plans(int model_length, int alphabet_codes,
                                     const plan::DeviceTraits& device,
                                     const plan::TuningTable* tuned);

/// The model length to plan a first kernel for: powers of two up to 1024, so that a whole library
/// of models needs few compiles, but closer from 2048 on, where padding would fill an SM.
/// Padded cells cost less than compiles unless thousands of models share a class: an SSV kernel
/// passes a model over 45 M residues in under a millisecond, a compile takes a hundred.
int coarse_length(int model_length);

}  // namespace hmmjit::gpu
