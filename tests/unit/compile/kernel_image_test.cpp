#include "compile/kernel_image.hpp"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

namespace hmmjit::compile {
namespace {

using testing::HasSubstr;

/// A minimal CUDA ELF with one kernel, written section by section.
struct TinyCubin {
  std::uint16_t machine = 190;

  std::string build() const {
    const std::string_view info(
        "\x04\x05\x04\x00\x80\x00\x00\x00"  // a sized attribute is skipped
        "\x03\x19\x10\x01",                 // 272 bytes of parameters
        12);
    std::vector<std::pair<std::string, std::string>> sections = {
        {"", ""},
        {".text.kernel", "code"},
        {".nv.info.kernel", std::string(info)},
        {".shstrtab", ""}};
    std::string names, body;
    for (const auto& [name, bytes] : sections) names += name + '\0';
    sections.back().second = names;
    std::vector<Elf64_Shdr> headers;
    std::size_t name = 0;
    for (const auto& [title, bytes] : sections) {
      Elf64_Shdr header{};
      header.sh_type = SHT_PROGBITS;
      header.sh_name = static_cast<Elf64_Word>(name);
      header.sh_offset = sizeof(Elf64_Ehdr) + body.size();
      header.sh_size = bytes.size();
      headers.push_back(header);
      name += title.size() + 1;
      body += bytes;
    }
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_machine = machine;
    header.e_shoff = sizeof header + body.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(headers.size());
    header.e_shstrndx = static_cast<Elf64_Half>(headers.size() - 1);
    std::string out(reinterpret_cast<const char*>(&header), sizeof header);
    out += body;
    out.append(reinterpret_cast<const char*>(headers.data()), headers.size() * sizeof(Elf64_Shdr));
    return out;
  }
};

TEST(Cubin, ParameterBytesOfOneKernel) {
  TinyCubin cubin;
  EXPECT_EQ(read_parameter_bytes(cubin.build(), "kernel"), 272);
  EXPECT_FALSE(read_parameter_bytes(cubin.build(), "absent"));
  cubin.machine = EM_X86_64;
  EXPECT_FALSE(read_parameter_bytes(cubin.build(), "kernel"));
  EXPECT_FALSE(read_parameter_bytes("", "kernel"));
  EXPECT_FALSE(read_parameter_bytes(".version 9.0\n.target sm_90\n", "kernel"));
}

// With the address sanitizer, this finds any read outside the image.
TEST(Cubin, DamagedFilesAreNeverReadOutside) {
  const std::string whole = TinyCubin().build();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::vector<char> exact(whole.begin(),
                                  whole.begin() + static_cast<std::ptrdiff_t>(length));
    (void)read_parameter_bytes({exact.data(), exact.size()}, "kernel");
  }
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<char> damaged(whole.begin(), whole.end());
    for (unsigned n = 1 + random() % 4; n > 0; --n)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    (void)read_parameter_bytes({damaged.data(), damaged.size()}, "kernel");
  }
}

TEST(PtxasLog, ResourcesOfTheNamedKernel) {
  const char* log =
      "ptxas info    : 21 bytes gmem\n"
      "ptxas info    : Compiling entry function 'other' for 'sm_90'\n"
      "ptxas info    : Function properties for other\n"
      "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n"
      "ptxas info    : Used 99 registers, used 1 barriers, 64 bytes smem\n"
      "ptxas info    : Compiling entry function 'kernel' for 'sm_90'\n"
      "ptxas info    : Function properties for kernel\n"
      "ptxas         .     180 bytes stack frame, 176 bytes spill stores, 172 bytes spill loads\n"
      "ptxas info    : Used 64 registers, used 1 barriers, 180 bytes cumulative stack size\n";
  const KernelResources r = read_ptxas_log(log, "kernel");
  EXPECT_EQ(r.registers, 64);
  EXPECT_EQ(r.local_bytes, 180);
  EXPECT_EQ(r.spill_bytes, 176);
  EXPECT_EQ(r.static_shared_bytes, 0);
  EXPECT_EQ(read_ptxas_log(log, "other").static_shared_bytes, 64);
  EXPECT_EQ(read_ptxas_log("", "kernel"), KernelResources{});
  EXPECT_EQ(read_ptxas_log(log, "kern"), KernelResources{})
      << "part of a name, as of a mangled one";
}

TEST(Gate, ComparesTheImageWithThePromise) {
  plan::Candidate candidate;
  candidate.expected.launch.block_threads = 256;
  candidate.expected.launch.dynamic_shared_bytes = 1000;
  candidate.expected.registers = 64;
  const auto h200 = *plan::find_device("H200");
  KernelResources good{.registers = 64,
                       .local_bytes = 0,
                       .spill_bytes = 0,
                       .static_shared_bytes = 0,
                       .max_threads = 256};
  EXPECT_EQ(gate(good, candidate, h200), std::nullopt);
  EXPECT_EQ(gate({}, candidate, h200), std::nullopt) << "PTX: nothing is known yet";
  const auto reason = [&](auto change) {
    KernelResources r = good;
    change(r);
    const auto text = gate(r, candidate, h200);
    return text ? *text : std::string("accepted");
  };
  EXPECT_THAT(reason([](auto& r) { r.spill_bytes = 4; }), HasSubstr("spills 4 bytes"));
  EXPECT_THAT(reason([](auto& r) { r.local_bytes = 8; }), HasSubstr("local memory"));
  EXPECT_THAT(reason([](auto& r) { r.registers = 65; }), HasSubstr("needs 65 registers"));
  EXPECT_THAT(reason([](auto& r) { r.max_threads = 128; }), HasSubstr("128 threads"));
  EXPECT_THAT(reason([](auto& r) { r.static_shared_bytes = 300'000; }), HasSubstr("does not fit"));
  candidate.expected.local_bytes = 8;
  EXPECT_EQ(reason([](auto& r) { r.local_bytes = 8; }), "accepted") << "promised local memory";
}

TEST(Resources, SurviveTheCache) {
  const KernelResources r{.registers = 64,
                          .local_bytes = 0,
                          .spill_bytes = 0,
                          .static_shared_bytes = 12,
                          .max_threads = -1};
  EXPECT_EQ(from_attributes(to_attributes(r)), r);
  EXPECT_EQ(from_attributes({{"registers", "many"}}), KernelResources{});
}

}  // namespace
}  // namespace hmmjit::compile
