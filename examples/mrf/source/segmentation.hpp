// Markov-random-field segmentation by iterated conditional modes.
//
// The energy of class k at a voxel is that of the Gaussian likelihood, (v - mean)^2 / 2 sigma^2 +
// ln sigma, plus beta times (neighbours of another class - neighbours of class k); each update
// gives a voxel the class of least energy, the lower class where two are equal. After each sweep
// the means and deviations are estimated again from the voxels of each class (Walters, Balu,
// Kompalli & Chaudhary, IPDPS 2009; Besag, J R Stat Soc B 48:259, 1986).
//
// All that decides on a label is integer arithmetic on quantised numbers (parameters.h), and no
// voxel is updated together with a neighbour: any device and any order gives the same labels.
#pragma once

#include <mrf/parameters.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "volume.hpp"

namespace mrf {

using mrf_device::ClassSums;
using mrf_device::ClassTerm;

enum class Start { kKMeans, kQuantiles };

struct Settings {
  int classes = 4;     ///< 2 to mrf_device::kMaxClasses
  int neighbours = 6;  ///< 6: across faces; 26: across edges and corners as well
  int iterations = 30;
  double beta = 1.0;          ///< 0 to 1000
  double tolerance = 0.0001;  ///< converged when no more than this share of the voxels changed
  Start start = Start::kKMeans;
  bool fixed_classes = false;  ///< keep the first estimate of means and deviations
};

/// Mean and standard deviation of a class, in levels.
struct ClassEstimate {
  std::uint64_t count = 0;
  double mean = 0, sigma = 0;
};

/// Voxels of each colour have no neighbour in it: 2 colours for 6 neighbours, 8 for 26.
constexpr int colours(int neighbours) { return neighbours == 6 ? 2 : 8; }

/// What one sweep over all colours did.
struct Sweep {
  std::uint64_t changed = 0;
  std::vector<ClassSums> sums;  ///< [classes], after the sweep
  double seconds = 0;           ///< of the updates; statistics not included
};

/// Holds a volume and its labels, on whatever device.
class Sweeper {
 public:
  virtual ~Sweeper() = default;
  /// `terms`: [classes]; `beta` in units of 1 / kEnergyScale.
  virtual Sweep sweep(std::span<const ClassTerm> terms, int beta) = 0;
  virtual Labels labels() = 0;
};

/// The reference: one core, plain loops.
std::unique_ptr<Sweeper> cpu_sweeper(const Volume& volume, const Labels& labels, int classes,
                                     int neighbours);

/// Labels by intensity alone: nearest centre of k-means, or between quantiles.
Labels first_labels(const Volume& volume, const Settings& settings);

std::vector<ClassSums> class_sums(const Volume& volume, const Labels& labels, int classes);
/// `before` stands in for classes without voxels. Deviations are at least two levels.
std::vector<ClassEstimate> estimate(std::span<const ClassSums> sums,
                                    std::span<const ClassEstimate> before);
ClassTerm class_term(const ClassEstimate& estimate);
/// kEnergyScale * beta, rounded.
int scaled_beta(double beta);
/// Data energy of one voxel.
int data_energy(const ClassTerm& term, int level);

/// Energy of a whole labelling, every pair of neighbours counted once. An update never raises it
/// while the terms stay.
std::int64_t total_energy(const Volume& volume, const Labels& labels,
                          std::span<const ClassTerm> terms, int beta, int neighbours);

struct Segmentation {
  Labels labels;
  std::vector<ClassEstimate> first, last;  ///< estimates before and after
  std::vector<std::uint64_t> changed;      ///< voxels, by sweep
  bool converged = false;
  double update_seconds = 0;  ///< of all sweeps
  double total_seconds = 0;   ///< with statistics and copies
};

/// Sweeps until converged, or settings.iterations times.
Segmentation segment(const Volume& volume, const Labels& first, const Settings& settings,
                     Sweeper& sweeper);

}  // namespace mrf
