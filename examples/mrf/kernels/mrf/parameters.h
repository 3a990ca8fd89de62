// What host and kernels share: layouts, scales and parameter structs; the same bytes on both sides.
// Compiled by the host compiler and by NVRTC without any header, hence the built-in types only.
//
// Label volume. One byte a voxel, with a border of one voxel of "no class" on every side, so that
// no kernel asks whether a neighbour exists. Rows start with four border bytes, which puts voxel 0
// on a word boundary, and end with four to seven, so that each word of voxels has words of its own
// row beside it. Intensity volume: 16 bits a voxel, no border, rows filled up to four voxels.
#ifndef MRF_PARAMETERS_H_
#define MRF_PARAMETERS_H_

#ifdef __CUDACC__
#define MRF_DEVICE __host__ __device__
#else
#define MRF_DEVICE
#endif

namespace mrf_device {

constexpr int kMaxClasses = 11;          ///< 12 fields of 5 bits, border included, fit 64 bits
constexpr int kIntensityLevels = 4096;   ///< 12 bits, as computed tomography has
constexpr int kMeanScale = 16;           ///< units of ClassTerm::mean per intensity level
constexpr int kEnergyScale = 1024;       ///< units of energies per natural unit
constexpr int kMaxDataEnergy = 1 << 24;  ///< of one voxel, before `offset`: no sum overflows

/// Gaussian likelihood of one class in integers: the energy of intensity v is
///   min(((16 v - mean)^2 * weight) >> 32, kMaxDataEnergy) + offset.
/// |16 v - mean| < 2^16, hence the square fits 32 bits and the product 64.
struct ClassTerm {
  int mean;             ///< kMeanScale * mean
  unsigned int weight;  ///< 2^32 * kEnergyScale / (2 sigma^2), sigma in units of `mean`
  int offset;           ///< kEnergyScale * ln(sigma)
};

struct UpdateParameters {
  unsigned char* labels;              ///< read and written
  const unsigned short* intensities;
  unsigned int* changed;              ///< adds the number of voxels that changed their class
  unsigned int colour;                ///< of the voxels that are updated
  int beta;                           ///< kEnergyScale * beta
  ClassTerm classes[kMaxClasses];
};

/// Sums over the voxels of each class.
struct ClassSums {
  unsigned long long count, sum, squares;
};

struct StatisticsParameters {
  const unsigned char* labels;
  const unsigned short* intensities;
  ClassSums* sums;  ///< [classes], added to
};

MRF_DEVICE constexpr int filled(int width) { return (width + 3) / 4 * 4; }
/// Bytes from one row of labels to the next.
MRF_DEVICE constexpr int label_pitch(int width) { return 4 + filled(width) + 4; }
/// Bytes from one plane of labels to the next.
MRF_DEVICE constexpr int label_plane(int width, int height) { return label_pitch(width) * (height + 2); }
/// Index of voxel (0, 0, 0) in the label volume.
MRF_DEVICE constexpr int label_origin(int width, int height) {
  return label_plane(width, height) + label_pitch(width) + 4;
}

}  // namespace mrf_device

#endif  // MRF_PARAMETERS_H_
