// Reading speed of the sequence and model readers:
//   readers_bench [--memory] [--rounds N] FILE...
// A file that opens as profiles is read as profiles, any other as targets packed into blocks of 4
// Mi residues. Speeds refer to uncompressed bytes, best round: MB/s of wall time and of CPU time
// (all threads, including those that decompress ahead).
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "core/numbers.hpp"
#include "io/hmm_file.hpp"
#include "io/sequence_file.hpp"

namespace hmmjit {
namespace {

struct Counts {
  std::uint64_t records = 0, residues = 0;
};

Result<std::unique_ptr<ByteSource>> open_source(const std::string& path, bool memory,
                                                std::vector<char>* bytes) {
  if (!memory) return open_byte_source(path);
  if (bytes->empty()) {
    std::ifstream stream(path, std::ios::binary);
    bytes->assign(std::istreambuf_iterator<char>(stream), {});
  }
  return open_memory_source(path, *bytes);
}

Result<std::uint64_t> stream_bytes(std::unique_ptr<ByteSource> source) {
  std::uint64_t total = 0;
  while (true) {
    HMMJIT_ASSIGN(std::span<const char> chunk, source->next());
    if (chunk.empty()) return total;
    total += chunk.size();
  }
}

Result<Counts> read_models(std::unique_ptr<ByteSource> source) {
  HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(std::move(source)));
  Counts counts;
  while (true) {
    HMMJIT_ASSIGN(std::optional<Hmm> hmm, reader.next());
    if (!hmm) return counts;
    ++counts.records;
    counts.residues += static_cast<std::uint64_t>(hmm->M);
  }
}

Result<Counts> read_targets(std::unique_ptr<ByteSource> source) {
  HMMJIT_ASSIGN(SequenceReader reader, SequenceReader::open(std::move(source), {amino_alphabet()}));
  Counts counts;
  while (true) {
    TargetBlock block;
    HMMJIT_ASSIGN(bool more, reader.read_block(block, std::uint64_t{4} << 20));
    if (!more) return counts;
    counts.records += block.size();
    counts.residues += block.residue_count();
  }
}

Status measure(const std::string& path, bool memory, int rounds) {
  std::vector<char> bytes;
  HMMJIT_ASSIGN(auto whole, open_source(path, memory, &bytes));
  HMMJIT_ASSIGN(std::uint64_t size, stream_bytes(std::move(whole)));
  HMMJIT_ASSIGN(auto probe, open_source(path, memory, &bytes));
  bool models = HmmReader::open(std::move(probe)).has_value();
  double wall = 1e30, processor = 1e30;
  Counts counts;
  for (int i = 0; i < rounds; ++i) {
    HMMJIT_ASSIGN(auto source, open_source(path, memory, &bytes));
    auto start = std::chrono::steady_clock::now();
    std::clock_t used = std::clock();
    HMMJIT_ASSIGN(counts,
                  models ? read_models(std::move(source)) : read_targets(std::move(source)));
    processor = std::min(processor, double(std::clock() - used) / CLOCKS_PER_SEC);
    wall = std::min(
        wall, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  double megabytes = static_cast<double>(size) / 1e6;
  fmt::print("{}: {} {}, {} {}, {:.1f} MB, {:.0f} MB/s wall, {:.0f} MB/s processor\n", path,
             counts.records, models ? "models" : "targets", counts.residues,
             models ? "nodes" : "residues", megabytes, megabytes / wall, megabytes / processor);
  return {};
}

}  // namespace
}  // namespace hmmjit

int main(int argc, char** argv) {
  bool memory = false;
  int rounds = 3;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--memory") {
      memory = true;
    } else if (argument == "--rounds" && i + 1 < argc) {
      rounds = static_cast<int>(hmmjit::parse_int(argv[++i]).value_or(3));
    } else if (auto done = hmmjit::measure(argument, memory, rounds); !done) {
      fmt::print(stderr, "readers_bench: {}\n", done.error().to_string());
      return 1;
    }
  }
  return 0;
}
