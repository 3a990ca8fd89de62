// Layouts, scales and parameters shared by host and kernels. Uses only built-in types: NVRTC has no
// headers.
//
// Label volume: one byte per voxel, with a border of one voxel of "no class" on every side: kernels
// need no border tests. Rows start with four border bytes, which aligns voxel 0 to a word, and end
// with four to seven. Intensity volume: 16 bits per voxel, no border, rows padded to a multiple of
// four voxels.
#ifndef MRF_PARAMETERS_H_
#define MRF_PARAMETERS_H_

#ifdef __CUDACC__
#define MRF_DEVICE __host__ __device__
#else
#define MRF_DEVICE
#endif

namespace mrf_device {

constexpr int kMaxClasses = 9;           ///< 10 fields of 3 bits, border included, fit 32 bits
constexpr int kIntensityLevels = 4096;   ///< 12 bits, as in computed tomography
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
  unsigned char* labels;  ///< read and written
  const unsigned short* intensities;
  unsigned int* changed;  ///< incremented for each voxel that changes its class
  unsigned int colour;    ///< parity of x + y + z of the voxels to update
  int beta;               ///< kEnergyScale * beta
  ClassTerm classes[kMaxClasses];
};

MRF_DEVICE constexpr int filled(int width) { return (width + 3) / 4 * 4; }
/// Bytes from one row of labels to the next, and from one plane to the next.
MRF_DEVICE constexpr int label_pitch(int width) { return 4 + filled(width) + 4; }
MRF_DEVICE constexpr int label_plane(int width, int height) {
  return label_pitch(width) * (height + 2);
}

}  // namespace mrf_device

#endif  // MRF_PARAMETERS_H_
