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
class TinyCubin {
 public:
  std::string entry = "kernel";
  unsigned registers_in_header = 40;
  int register_attribute = -1;  // .nv.info REGCOUNT when >= 0
  unsigned frame = 0, shared = 0;
  unsigned threads = 0;
  std::uint16_t machine = 190;

  std::string build() const {
    std::vector<std::pair<std::string, std::pair<Elf64_Shdr, std::string>>> sections;
    const auto add = [&](const std::string& name, std::uint32_t type, std::string bytes) {
      Elf64_Shdr header{};
      header.sh_type = type;
      header.sh_size = bytes.size();
      sections.push_back({name, {header, std::move(bytes)}});
      return sections.size() - 1;
    };
    add("", SHT_NULL, "");
    const std::string strings = std::string("\0other\0", 7) + entry + '\0';
    const auto string_table = add(".strtab", SHT_STRTAB, strings);
    Elf64_Sym symbols[3]{};
    symbols[1].st_name = 1;
    symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
    symbols[2].st_name = 7;
    symbols[2].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    const auto symbol_table = add(
        ".symtab", SHT_SYMTAB, std::string(reinterpret_cast<const char*>(symbols), sizeof symbols));
    sections[symbol_table].second.first.sh_link = static_cast<Elf64_Word>(string_table);
    const auto text = add(".text." + entry, SHT_PROGBITS, std::string(64, 'x'));
    sections[text].second.first.sh_info = registers_in_header << 24 | 2;
    std::string info = attribute(0x11, {2, frame}) + attribute(0x11, {1, 999});
    if (register_attribute >= 0)
      info += attribute(0x2f, {2, static_cast<unsigned>(register_attribute)});
    add(".nv.info", SHT_PROGBITS, info);
    std::string own = std::string("\x03\x1b\xff\x00", 4);  // an inline attribute is skipped
    if (threads > 0) own += attribute(0x05, {threads, 1, 1});
    add(".nv.info." + entry, SHT_PROGBITS, own);
    const auto shared_section = add(".nv.shared." + entry, SHT_NOBITS, "");
    sections[shared_section].second.first.sh_size = shared;

    std::string names, body;
    const auto name_table = add(".shstrtab", SHT_STRTAB, "");
    std::vector<Elf64_Shdr> headers;
    for (auto& [name, section] : sections) {
      section.first.sh_name = static_cast<Elf64_Word>(names.size());
      names += name + '\0';
    }
    sections[name_table].second.second = names;
    sections[name_table].second.first.sh_size = names.size();
    for (auto& [name, section] : sections) {
      section.first.sh_offset = sizeof(Elf64_Ehdr) + body.size();
      body += section.second;
      headers.push_back(section.first);
    }
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_machine = machine;
    header.e_shoff = sizeof header + body.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(headers.size());
    header.e_shstrndx = static_cast<Elf64_Half>(name_table);
    std::string out(reinterpret_cast<const char*>(&header), sizeof header);
    out += body;
    out.append(reinterpret_cast<const char*>(headers.data()), headers.size() * sizeof(Elf64_Shdr));
    return out;
  }

 private:
  static std::string attribute(unsigned char code, std::vector<unsigned> words) {
    std::string out{'\x04', static_cast<char>(code)};
    const auto size = static_cast<std::uint16_t>(words.size() * 4);
    out.append(reinterpret_cast<const char*>(&size), 2);
    out.append(reinterpret_cast<const char*>(words.data()), size);
    return out;
  }
};

TEST(Cubin, ResourcesOfOneKernel) {
  TinyCubin cubin;
  cubin.frame = 24;
  cubin.shared = 512;
  cubin.threads = 256;
  auto resources = read_cubin(cubin.build(), "kernel");
  ASSERT_TRUE(resources) << resources.error().to_string();
  EXPECT_EQ(resources->registers, 40);
  EXPECT_EQ(resources->local_bytes, 24);
  EXPECT_EQ(resources->static_shared_bytes, 512);
  EXPECT_EQ(resources->max_threads, 256);
  EXPECT_EQ(resources->spill_bytes, -1);
  cubin.register_attribute = 77;  // newer files say it there
  EXPECT_EQ(read_cubin(cubin.build(), "kernel")->registers, 77);
}

TEST(Cubin, OtherFilesAreRefused) {
  TinyCubin cubin;
  EXPECT_FALSE(read_cubin(cubin.build(), "absent"));
  cubin.machine = EM_X86_64;
  EXPECT_FALSE(read_cubin(cubin.build(), "kernel"));
  EXPECT_FALSE(read_cubin("", "kernel"));
  EXPECT_FALSE(
      read_cubin("\x7f"
                 "ELF",
                 "kernel"));
  EXPECT_FALSE(read_cubin(".version 9.0\n.target sm_90\n", "kernel"));
}

// Run under the address sanitizer, this finds any read outside the image.
TEST(Cubin, DamagedFilesAreNeverReadOutside) {
  TinyCubin cubin;
  cubin.threads = 128;
  const std::string whole = cubin.build();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string copy = whole.substr(0, length);
    const std::vector<char> exact(copy.begin(), copy.end());  // no terminator behind it
    (void)read_cubin({exact.data(), exact.size()}, "kernel");
  }
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    std::vector<char> damaged(whole.begin(), whole.end());
    for (unsigned n = 1 + random() % 4; n > 0; --n) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    (void)read_cubin({damaged.data(), damaged.size()}, "kernel");
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
}

TEST(Gate, ComparesTheImageWithThePromise) {
  plan::Candidate candidate;
  candidate.launch.block_threads = 256;
  candidate.launch.dynamic_shared_bytes = 1000;
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
