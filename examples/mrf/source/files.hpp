// Volumes in NIfTI files, slices in PNG files. All functions throw hmmjit::Error: kInput for what
// cannot be read, kOutput for what cannot be written.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "volume.hpp"

namespace mrf {

/// An image as it was read: what labels written beside it take over (orientation, voxel size).
struct Image {
  Size size;
  std::vector<float> values;               ///< scaled by the file's slope and intercept
  std::array<double, 3> spacing{1, 1, 1};  ///< of voxels, in the file's units
  std::string type;                        ///< of the file's voxels: "INT16", ...
  std::shared_ptr<void> header;            ///< of the file
};

/// Reads NIfTI-1 and NIfTI-2, plain or gzip; of a series, volume `frame`, which must then be given.
Image read_nifti(const std::string& path, std::optional<int> frame);

/// Writes labels as 8-bit NIfTI, plain or gzip by the ending of `path`: .nii or .nii.gz. `image`:
/// whose orientation to keep; its values are not used.
void write_nifti(const std::string& path, const Image& image, const Labels& labels);
/// Writes levels as 16-bit NIfTI.
void write_nifti(const std::string& path, const Image& image, const Volume& volume);

/// Writes slices into `folder`, which is made: every `step`-th axial one, the middle coronal and
/// sagittal ones; intensities left, classes in colour right. Returns the number of files.
int write_slices(const std::string& folder, const Volume& volume, const Labels& labels, int step);

}  // namespace mrf
