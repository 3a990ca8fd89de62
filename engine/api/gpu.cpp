// GPUs, their memory, streams and events, and kernels on them.
#include "api/handles.hpp"
#include "gpu/kernel_loader.hpp"

namespace hmmjit::v0 {

Gpu open_gpu(std::shared_ptr<driver::Driver> driver, int ordinal) {
  check(driver->require());
  auto impl = std::make_shared<Gpu::Impl>();
  impl->device = value(driver->device(ordinal));
  impl->traits = to_device(impl->device->traits(), ordinal);
  impl->driver = std::move(driver);
  return Gpu(std::move(impl));
}

Gpu::Gpu(int ordinal)
    : SharedHandle(guarded([&] { return open_gpu(driver::Driver::open(), ordinal).impl(); })) {}
const Device& Gpu::device() const { return impl_->traits; }
Gpu::Memory Gpu::memory() const {
  return guarded([&] {
    const auto memory = value(impl_->device->memory());
    return Memory{memory.free, memory.total};
  });
}
void Gpu::synchronize() const {
  guarded([&] { check(impl_->device->synchronize()); });
}

namespace {
// An object on a GPU. Keeps the driver alive, to which devices refer.
template <typename T>
struct OnGpu {
  Gpu gpu;
  T value;
};
template <typename Impl, typename... Arguments>
std::shared_ptr<Impl> make_on(const Gpu& gpu, Arguments... arguments) {
  return guarded([&] {
    using Made = decltype(Impl::value);
    return std::make_shared<Impl>(
        Impl{{gpu, value(Made::create(gpu.impl()->device, arguments...))}});
  });
}
}  // namespace

struct StreamImpl : OnGpu<driver::Stream> {};
Stream::Stream(const Gpu& gpu) : SharedHandle(make_on<Impl>(gpu)) {}
Stream Stream::from_native(const Gpu& gpu, void* stream) {
  return guarded([&] {
    const auto handle = static_cast<driver::StreamHandle>(stream);
    return Stream(
        std::make_shared<Impl>(Impl{{gpu, driver::Stream::borrow(gpu.impl()->device, handle)}}));
  });
}
void* Stream::native() const { return impl_->value.handle(); }
void Stream::synchronize() const {
  guarded([&] { check(impl_->value.synchronize()); });
}
bool Stream::finished() const {
  return guarded([&] { return value(impl_->value.finished()); });
}

struct EventImpl : OnGpu<driver::Event> {};
Event::Event(const Gpu& gpu, bool timing) : SharedHandle(make_on<Impl>(gpu, timing)) {}
void Event::record(const Stream& stream) {
  guarded([&] { check(impl_->value.record(stream.impl()->value)); });
}
void Event::synchronize() const {
  guarded([&] { check(impl_->value.synchronize()); });
}
bool Event::finished() const {
  return guarded([&] { return value(impl_->value.finished()); });
}
void Event::wait_in(const Stream& stream) const {
  guarded([&] { check(impl_->value.wait_in(stream.impl()->value)); });
}
float Event::milliseconds(const Event& start, const Event& end) {
  return guarded(
      [&] { return value(driver::Event::milliseconds(start.impl_->value, end.impl_->value)); });
}
void* Event::native() const { return impl_->value.handle(); }

struct BufferImpl : OnGpu<driver::DeviceBuffer> {};
namespace {
void check_range(std::size_t size, std::size_t bytes, std::size_t offset) {
  if (offset > size || bytes > size - offset) {
    throw Error(ErrorCode::kUsage, "bytes " + std::to_string(offset) + " to " +
                                       std::to_string(offset + bytes) +
                                       " are outside a buffer of " + std::to_string(size));
  }
}
}  // namespace
Buffer::Buffer(const Gpu& gpu, std::size_t bytes) : SharedHandle(make_on<Impl>(gpu, bytes)) {}
std::uint64_t Buffer::address() const { return impl_->value.address(); }
std::size_t Buffer::size() const { return impl_->value.size(); }
void Buffer::upload(const Stream& stream, const void* from, std::size_t bytes, std::size_t offset) {
  guarded([&] {
    check_range(size(), bytes, offset);
    if (bytes > 0) check(impl_->value.upload(stream.impl()->value, from, bytes, offset));
  });
}
void Buffer::download(const Stream& stream, void* to, std::size_t bytes, std::size_t offset) const {
  guarded([&] {
    check_range(size(), bytes, offset);
    if (bytes > 0) check(impl_->value.download(stream.impl()->value, to, bytes, offset));
  });
}
void Buffer::fill(const Stream& stream, unsigned char byte, std::size_t bytes, std::size_t offset) {
  guarded([&] {
    check_range(size(), bytes, offset);
    if (bytes > 0) check(impl_->value.fill(stream.impl()->value, byte, bytes, offset));
  });
}

struct PinnedBufferImpl : OnGpu<driver::PinnedBuffer> {};
PinnedBuffer::PinnedBuffer(const Gpu& gpu, std::size_t bytes)
    : SharedHandle(make_on<Impl>(gpu, bytes)) {}
void* PinnedBuffer::data() const { return impl_->value.bytes().data(); }
std::size_t PinnedBuffer::size() const { return impl_->value.bytes().size(); }

// ---- loaded kernels -------------------------------------------------------------------------

struct KernelImpl {
  KernelImage image;
  Gpu gpu;
  std::shared_ptr<driver::LoadedKernel> loaded;
  driver::LoadedResources resources;
};

Kernel Engine::load(const Plan& plan, const Gpu& gpu) {
  return guarded([&] {
    compile::KernelProvider& kernels = impl_->kernels();
    hmmjit::gpu::ProviderKernels source({std::shared_ptr<void>(), &kernels});
    hmmjit::gpu::KernelLoader loader(gpu.impl()->driver);
    const plan::Plan& wanted = plan.impl()->plan;
    const hmmjit::gpu::ReadyKernel ready =
        value(loader.load(wanted, value(kernels.get(wanted)), *gpu.impl()->device, source));
    const auto& [kernel, loaded, resources] = ready.accepted();
    return Kernel(std::make_shared<Kernel::Impl>(
        Kernel::Impl{make_image(plan, kernel), gpu, loaded, resources}));
  });
}

const KernelImage& Kernel::image() const { return impl_->image; }
void* Kernel::native() const { return impl_->loaded->handle(); }
int Kernel::blocks_per_sm() const { return impl_->resources.blocks_per_sm; }
unsigned Kernel::resident_blocks() const {
  return static_cast<unsigned>(impl_->gpu.device().sm_count * impl_->resources.blocks_per_sm);
}
void Kernel::launch_bytes(const Stream& stream, const Grid& grid, const void* parameters,
                          std::size_t bytes) const {
  guarded([&] {
    const std::string name = impl_->image.info().name;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0)
      throw Error(ErrorCode::kUsage, "a launch of no blocks", name);
    const int wanted = impl_->image.info().parameter_bytes;
    if (wanted >= 0 && bytes != static_cast<std::size_t>(wanted)) {
      throw Error(ErrorCode::kUsage,
                  "the kernel takes " + std::to_string(wanted) + " bytes of parameters, not " +
                      std::to_string(bytes),
                  name, "host and kernel must declare the same struct");
    }
    if (stream.impl()->gpu.impl()->device != impl_->gpu.impl()->device)
      throw Error(ErrorCode::kUsage, "kernel and stream belong to different GPUs", name);
    const LaunchShape& s = impl_->image.candidate().launch;
    check(impl_->loaded->launch(
        stream.impl()->value,
        {.blocks = grid.x,
         .block_threads = static_cast<unsigned>(s.threads_x),
         .dynamic_shared_bytes = static_cast<unsigned>(s.dynamic_shared_bytes),
         .blocks_y = grid.y,
         .blocks_z = grid.z,
         .threads_y = static_cast<unsigned>(s.threads_y),
         .threads_z = static_cast<unsigned>(s.threads_z)},
        parameters));
  });
}
KernelResources Kernel::resources() const {
  return {impl_->resources.registers, impl_->resources.local_bytes,
          impl_->resources.static_shared_bytes};
}

}  // namespace hmmjit::v0
