#include "files.hpp"

#include <mrf/parameters.h>
#include <nifti2_io.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <hmmjit/error.hpp>

namespace mrf {

using hmmjit::Error;
using hmmjit::ErrorCode;

namespace {

using ImagePointer = std::unique_ptr<nifti_image, void (*)(nifti_image*)>;

template <typename T>
void convert(const void* from, std::size_t count, double slope, double intercept, float* to) {
  const T* values = static_cast<const T*>(from);
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = static_cast<float>(static_cast<double>(values[i]) * slope + intercept);
  }
}

bool ends_with(const std::string& text, const char* end) {
  return std::string_view(text).ends_with(end);
}

void write(const std::string& path, const Image& image, int type, const void* data) {
  if (!ends_with(path, ".nii") && !ends_with(path, ".nii.gz")) {
    throw Error(ErrorCode::kUsage, "the name of a NIfTI file ends in .nii or .nii.gz", path);
  }
  // The library would say so on standard error, whatever its level.
  if (!std::ofstream(path, std::ios::binary)) {
    throw Error(ErrorCode::kOutput, "the file cannot be written", path,
                "check the folder and its permissions");
  }
  nifti_set_debug_level(0);
  ImagePointer out(nullptr, nifti_image_free);
  const int64_t dims[8] = {3, image.size.width, image.size.height, image.size.depth, 1, 1, 1, 1};
  if (image.header) {
    out.reset(nifti_copy_nim_info(static_cast<nifti_image*>(image.header.get())));
  } else {
    out.reset(nifti_make_new_nim(dims, type, 0));
  }
  if (!out) throw Error(ErrorCode::kResources, "out of memory", path);
  std::copy_n(dims, 8, out->dim);
  nifti_update_dims_from_array(out.get());
  out->datatype = type;
  nifti_datatype_sizes(type, &out->nbyper, &out->swapsize);
  out->scl_slope = 1;
  out->scl_inter = 0;
  out->cal_min = out->cal_max = 0;
  out->nifti_type = NIFTI_FTYPE_NIFTI1_1;
  for (const int64_t extent : {dims[1], dims[2], dims[3]}) {
    if (extent > 32767) out->nifti_type = NIFTI_FTYPE_NIFTI2_1;  // 16-bit extents in NIfTI-1
  }
  if (nifti_set_filenames(out.get(), path.c_str(), 0, 1) != 0) {
    throw Error(ErrorCode::kOutput, "the NIfTI library refuses this name", path);
  }
  // Borrowed: the library does not change what it writes, and must not free it.
  out->data = const_cast<void*>(data);
  nifti_image_write(out.get());
  out->data = nullptr;
  // The library does not say whether it wrote everything: the file is read again.
  const ImagePointer written(nifti_image_read(path.c_str(), 1), nifti_image_free);
  const auto bytes = static_cast<std::size_t>(image.size.voxels() * out->nbyper);
  if (!written || written->data == nullptr || written->nx != dims[1] || written->ny != dims[2] ||
      written->nz != dims[3] || written->datatype != type ||
      std::memcmp(written->data, data, bytes) != 0) {
    throw Error(ErrorCode::kOutput, "the volume cannot be written", path,
                "check the folder and the space left");
  }
}

/// An RGB picture that is written as PNG.
struct Picture {
  Picture(int w, int h)
      : width(w),
        height(h),
        pixels(static_cast<std::size_t>(w) * static_cast<std::size_t>(h) * 3) {}
  unsigned char* at(int x, int y) {
    return &pixels[(static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                    static_cast<std::size_t>(x)) *
                   3];
  }
  void write(const std::string& path) const {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = static_cast<png_uint_32>(width);
    image.height = static_cast<png_uint_32>(height);
    image.format = PNG_FORMAT_RGB;
    if (png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr) == 0) {
      throw Error(ErrorCode::kOutput, std::string("the slice cannot be written: ") + image.message,
                  path);
    }
  }
  int width, height;
  std::vector<unsigned char> pixels;
};

// Distinguishable without red against green (Okabe & Ito 2008), then lighter ones.
constexpr unsigned char kColours[mrf_device::kMaxClasses][3] = {
    {0, 0, 0},     {0, 114, 178},   {230, 159, 0},   {240, 228, 66},  {86, 180, 233}, {213, 94, 0},
    {0, 158, 115}, {204, 121, 167}, {170, 170, 170}, {148, 103, 189}, {255, 255, 255}};

}  // namespace

Image read_nifti(const std::string& path, std::optional<int> frame) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) {
    throw Error(ErrorCode::kInput, "no such file", path, "name a NIfTI volume, .nii or .nii.gz");
  }
  nifti_set_debug_level(0);  // the library would write to standard error
  if (is_nifti_file(path.c_str()) < 0) {
    throw Error(ErrorCode::kInput, "not a NIfTI file", path,
                "name a NIfTI volume, .nii or .nii.gz");
  }
  const std::shared_ptr<nifti_image> file(nifti_image_read(path.c_str(), 0), nifti_image_free);
  if (!file) throw Error(ErrorCode::kInput, "damaged NIfTI header", path);

  Image out;
  for (const int64_t extent : {file->nx, file->ny, file->nz}) {
    if (extent < 1 || extent > (1 << 24)) {
      throw Error(ErrorCode::kInput, "unusable extent " + std::to_string(extent), path);
    }
  }
  out.size = {static_cast<int>(file->nx), static_cast<int>(file->ny), static_cast<int>(file->nz)};
  const auto voxels = static_cast<std::size_t>(out.size.voxels());
  const auto frames = file->nvox / static_cast<int64_t>(voxels);
  if (frames > 1 && !frame) {
    throw Error(ErrorCode::kInput, "a series of " + std::to_string(frames) + " volumes", path,
                "choose one with --frame, 0 to " + std::to_string(frames - 1));
  }
  if (frame.value_or(0) >= frames) {
    throw Error(ErrorCode::kInput,
                "no volume " + std::to_string(*frame) + " in a series of " + std::to_string(frames),
                path);
  }
  out.type = nifti_datatype_string(file->datatype);
  using Convert = void (*)(const void*, std::size_t, double, double, float*);
  Convert function = nullptr;
  switch (file->datatype) {
    case NIFTI_TYPE_UINT8:
      function = convert<std::uint8_t>;
      break;
    case NIFTI_TYPE_INT8:
      function = convert<std::int8_t>;
      break;
    case NIFTI_TYPE_UINT16:
      function = convert<std::uint16_t>;
      break;
    case NIFTI_TYPE_INT16:
      function = convert<std::int16_t>;
      break;
    case NIFTI_TYPE_UINT32:
      function = convert<std::uint32_t>;
      break;
    case NIFTI_TYPE_INT32:
      function = convert<std::int32_t>;
      break;
    case NIFTI_TYPE_UINT64:
      function = convert<std::uint64_t>;
      break;
    case NIFTI_TYPE_INT64:
      function = convert<std::int64_t>;
      break;
    case NIFTI_TYPE_FLOAT32:
      function = convert<float>;
      break;
    case NIFTI_TYPE_FLOAT64:
      function = convert<double>;
      break;
    default:
      throw Error(ErrorCode::kInput, "voxels of type " + out.type + " are not supported", path,
                  "convert to integers or floats");
  }
  if (nifti_image_load(file.get()) != 0 || file->data == nullptr) {
    throw Error(ErrorCode::kInput, "the file ends before its volume does", path);
  }
  out.values.resize(voxels);
  // A slope of 0 means that values are not scaled.
  const bool scaled = file->scl_slope != 0 && std::isfinite(file->scl_slope);
  const auto* data =
      static_cast<const unsigned char*>(file->data) +
      static_cast<std::size_t>(frame.value_or(0)) * voxels * static_cast<std::size_t>(file->nbyper);
  function(data, voxels, scaled ? file->scl_slope : 1, scaled ? file->scl_inter : 0,
           out.values.data());
  nifti_image_unload(file.get());
  out.spacing = {file->dx, file->dy, file->dz};
  out.header = file;
  return out;
}

void write_nifti(const std::string& path, const Image& image, const Labels& labels) {
  write(path, image, NIFTI_TYPE_UINT8, labels.data());
}
void write_nifti(const std::string& path, const Image& image, const Volume& volume) {
  write(path, image, NIFTI_TYPE_UINT16, volume.levels.data());
}

int write_slices(const std::string& folder, const Volume& volume, const Labels& labels, int step) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) {
    throw Error(ErrorCode::kOutput, "the folder cannot be made: " + code.message(), folder);
  }
  const auto [w, h, d] = volume.size;
  int files = 0;
  // `voxel(x, y)` is an index into the volume; rows of pictures run downwards, y and z upwards.
  const auto slice = [&](const char* plane, int number, int width, int height,
                         const std::function<std::size_t(int, int)>& voxel) {
    Picture picture(2 * width, height);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const std::size_t i = voxel(x, height - 1 - y);
        const auto grey = static_cast<unsigned char>(volume.levels[i] >> 4);
        std::fill_n(picture.at(x, y), 3, grey);
        std::copy_n(kColours[labels[i]], 3, picture.at(width + x, y));
      }
    }
    char name[64];
    std::snprintf(name, sizeof name, "%s_%04d.png", plane, number);
    picture.write((std::filesystem::path(folder) / name).string());
    ++files;
  };
  const auto at = [&](int x, int y, int z) {
    return (static_cast<std::size_t>(z) * h + y) * w + x;
  };
  for (int z = step / 2 < d ? step / 2 : 0; z < d; z += step) {
    slice("axial", z, w, h, [&](int x, int y) { return at(x, y, z); });
  }
  slice("coronal", h / 2, w, d, [&](int x, int z) { return at(x, h / 2, z); });
  slice("sagittal", w / 2, h, d, [&](int y, int z) { return at(w / 2, y, z); });
  return files;
}

}  // namespace mrf
