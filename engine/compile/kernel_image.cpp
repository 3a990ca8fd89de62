#include "compile/kernel_image.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <ranges>
#include <vector>

#include "core/numbers.hpp"

namespace hmmjit::compile {
namespace {

constexpr std::uint16_t kCudaMachine = 190;  // EM_CUDA

// Attribute codes of .nv.info, as `cuobjdump -elf` names them.
constexpr unsigned kFormatInline = 3;  // the value is the 16-bit field itself
constexpr unsigned kFormatSized = 4;   // the 16-bit field is the size of the value
constexpr unsigned kParameterBytes = 0x19;

template <typename T>
bool copy_at(std::string_view bytes, std::size_t at, T& out) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return false;
  std::memcpy(&out, bytes.data() + at, sizeof(T));
  return true;
}

std::string_view text_at(std::string_view table, std::size_t at) {
  if (at >= table.size()) return {};
  const std::string_view rest = table.substr(at);
  return rest.substr(0, rest.find('\0'));
}

struct Section {
  std::string_view name;
  std::string_view bytes;  ///< empty for NOBITS
  Elf64_Shdr header;
};

/// Calls visit(code, value bytes) for each attribute of an .nv.info section.
template <typename Visit>
void each_attribute(std::string_view bytes, Visit visit) {
  while (bytes.size() >= 4) {
    const auto format = static_cast<unsigned char>(bytes[0]);
    const auto code = static_cast<unsigned char>(bytes[1]);
    std::uint16_t size = 0;
    std::memcpy(&size, bytes.data() + 2, 2);
    const std::string_view field = bytes.substr(2, 2);
    bytes.remove_prefix(4);
    if (format == kFormatSized) {
      if (size > bytes.size()) return;
      visit(code, bytes.substr(0, size));
      bytes.remove_prefix(size);
    } else if (format <= kFormatInline) {
      visit(code, field);
    } else {
      return;
    }
  }
}

/// Empty if the image is damaged or is not a 64-bit CUDA ELF.
std::vector<Section> sections_of(std::string_view image) {
  Elf64_Ehdr header;
  if (!copy_at(image, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kCudaMachine)
    return {};
  std::vector<Section> sections;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Section s{};
    if (!copy_at(image, header.e_shoff + std::size_t{i} * header.e_shentsize, s.header)) return {};
    if (s.header.sh_type != SHT_NOBITS) {
      if (s.header.sh_offset > image.size() || s.header.sh_size > image.size() - s.header.sh_offset)
        return {};
      s.bytes = image.substr(s.header.sh_offset, s.header.sh_size);
    }
    sections.push_back(s);
  }
  if (header.e_shstrndx >= sections.size()) return {};
  for (Section& s : sections) s.name = text_at(sections[header.e_shstrndx].bytes, s.header.sh_name);
  return sections;
}

}  // namespace

std::optional<int> read_parameter_bytes(std::string_view image, std::string_view entry_name) {
  std::optional<int> bytes;
  const std::string info_name = fmt::format(".nv.info.{}", entry_name);
  for (const Section& s : sections_of(image)) {
    if (s.name != info_name) continue;
    each_attribute(s.bytes, [&](unsigned code, std::string_view value) {
      std::uint16_t size = 0;
      if (code == kParameterBytes && copy_at(value, 0, size)) bytes = size;
    });
  }
  return bytes;
}

KernelResources read_ptxas_log(std::string_view log, std::string_view entry_name) {
  KernelResources out;
  // The whole name: the mangled one of a kernel without extern "C" contains it.
  const std::string quoted = fmt::format("'{}'", entry_name);
  const std::string last = fmt::format(" {}", entry_name);
  bool ours = false;
  const auto number_before = [](std::string_view line, std::string_view words) {
    const std::size_t at = line.find(words);
    if (at == std::string_view::npos) return -1;
    std::size_t begin = at;
    while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
    const auto value = parse_int(line.substr(begin, at - begin));
    return value ? static_cast<int>(*value) : -1;
  };
  for (const auto part : std::views::split(log, '\n')) {
    const std::string_view line(part);
    if (line.find("Compiling entry function") != std::string_view::npos ||
        line.find("Function properties for") != std::string_view::npos) {
      ours = line.find(quoted) != std::string_view::npos || line.ends_with(last);
    }
    if (!ours) continue;
    if (const int n = number_before(line, " bytes stack frame"); n >= 0) out.local_bytes = n;
    if (const int n = number_before(line, " bytes spill stores"); n >= 0) out.spill_bytes = n;
    if (const int n = number_before(line, " registers"); n >= 0) {
      out.registers = n;
      const int shared = number_before(line, " bytes smem");
      out.static_shared_bytes = shared >= 0 ? shared : 0;
    }
  }
  return out;
}

std::optional<std::string> gate(const KernelResources& r, const plan::Candidate& candidate,
                                const plan::DeviceTraits& device) {
  if (r.spill_bytes > 0) {
    return fmt::format("spills {} bytes a thread ({} registers)", r.spill_bytes, r.registers);
  }
  if (r.local_bytes > candidate.expected.local_bytes) {
    return fmt::format("keeps {} bytes a thread in local memory, {} promised", r.local_bytes,
                       candidate.expected.local_bytes);
  }
  if (r.registers > candidate.expected.registers) {
    return fmt::format("needs {} registers, at most {} promised", r.registers,
                       candidate.expected.registers);
  }
  if (r.max_threads > 0 && candidate.expected.launch.block_threads > r.max_threads) {
    return fmt::format("is bounded to {} threads a block, {} planned", r.max_threads,
                       candidate.expected.launch.block_threads);
  }
  if (r.registers > 0) {
    const auto fit = plan::occupancy(
        device, candidate.expected.launch.block_threads, r.registers,
        candidate.expected.launch.dynamic_shared_bytes + std::max(r.static_shared_bytes, 0));
    if (fit.blocks_per_sm == 0) {
      return fmt::format(
          "does not fit an SM: {} threads x {} registers, {} + {} bytes of shared "
          "memory ({})",
          candidate.expected.launch.block_threads, r.registers, std::max(r.static_shared_bytes, 0),
          candidate.expected.launch.dynamic_shared_bytes, fit.limiter);
    }
  }
  return std::nullopt;
}

namespace {
struct Field {
  const char* name;
  int KernelResources::*value;
};
constexpr Field kFields[] = {{"registers", &KernelResources::registers},
                             {"local_bytes", &KernelResources::local_bytes},
                             {"spill_bytes", &KernelResources::spill_bytes},
                             {"static_shared_bytes", &KernelResources::static_shared_bytes},
                             {"max_threads", &KernelResources::max_threads}};
}  // namespace

std::map<std::string, std::string> to_attributes(const KernelResources& resources) {
  std::map<std::string, std::string> out;
  for (const Field& field : kFields) {
    if (resources.*field.value >= 0) out[field.name] = fmt::format("{}", resources.*field.value);
  }
  return out;
}

KernelResources from_attributes(const std::map<std::string, std::string>& attributes) {
  KernelResources out;
  for (const Field& field : kFields) {
    const auto found = attributes.find(field.name);
    if (found == attributes.end()) continue;
    if (const auto value = parse_int(found->second)) out.*field.value = static_cast<int>(*value);
  }
  return out;
}

}  // namespace hmmjit::compile
