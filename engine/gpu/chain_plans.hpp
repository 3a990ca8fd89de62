// The kernels of a chain of filters, and the model lengths for which they are compiled.
//
// A search plans coarsely, so that a library of models needs few compiles: the stages after SSV see
// few targets and are latency-bound, and a closer SSV kernel soon replaces the first one.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "plan/plan.hpp"

namespace hmmjit::gpu {

/// The kernels of a chain. kFineSsv, for a closer model length, replaces kSsv once it is ready;
/// kExactViterbi takes the targets that kViterbi flags, or all of them.
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
/// The element that belongs to a link, in a container with one for each.
template <typename T>
const T& of_link(const std::array<T, kLinks>& all, Link link) {
  return all[static_cast<std::size_t>(link)];
}

plan::Stage link_stage(Link link);
/// True if a chain of filters uses the kernel; false for the domain stage after it.
bool is_filter(Link link);
/// A search's priority for the kernel of a model of that length; 0 is last. Kernels that decide
/// most targets of a class come before those of the next class, usual lengths first.
int link_priority(Link link, int model_length);
/// True if a chain must wait for this kernel: a chain of SSV alone would leave a third of the
/// filters' work to the CPU. False for the kernels after Viterbi and MSV, which see few targets,
/// and for those of the domain stage, whose targets can wait.
bool link_decides(Link link);
/// The model lengths for which to plan a link's kernel, to be tried in order until one has a plan.
/// Each is at least `model_length`; the last is the model's own, and those before it are shared by
/// many models; just 1 if one kernel serves all. kFineSsv: steps of a third to a half, worth a
/// second compile for the stage that does nearly all cells. Kernels of the domain stage are shared
/// by models whose rows leave room for equally many targets per warp on this device.
std::vector<int> link_lengths(Link link, int model_length, int alphabet_codes,
                              const plan::DeviceTraits& device);
/// The plan for a link's kernel at exactly that length, one of link_lengths().
Result<plan::Plan> link_plan(Link link, int length, int alphabet_codes,
                             const plan::DeviceTraits& device, const plan::TuningTable* tuned);

/// The kernels that a search with such a model uses once all are ready; the first is SSV's for the
/// model's own size class. Links without a kernel for the device are omitted; the CPU does their
/// stages, or all if SSV has none.
std::vector<plan::Plan> search_plans(int model_length, int alphabet_codes,
                                     const plan::DeviceTraits& device,
                                     const plan::TuningTable* tuned);

/// The model length for which to plan a first kernel: powers of two up to 1024, so that a whole
/// library of models needs few compiles, but closer from 2048 on, where padding would fill an SM.
/// Padded cells cost less than compiles unless thousands of models share a class: an SSV kernel
/// passes a model over 45 M residues in under a millisecond, a compile takes a hundred.
int coarse_length(int model_length);

}  // namespace hmmjit::gpu
