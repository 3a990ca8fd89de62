// For any bytes, a database is refused or read within its bounds. If verify() succeeds, the reader
// delivers all targets.
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/digest.hpp"
#include "io/database_format.hpp"
#include "io/target_database.hpp"
#include "tests/fuzz/entry.hpp"

namespace {

void read_everything(const std::string& bytes) {
  using namespace hmmjit;
  const auto database = TargetDatabase::from_bytes("fuzz", bytes);
  if (!database) return require(!database.error().message.empty());
  const bool whole = (*database)->verify().has_value();
  const Alphabet& alphabet = *(*database)->summary().alphabet;
  (void)(*database)->length_at_rank(0);
  (void)(*database)->about();
  DatabaseReader reader(*database);
  std::uint64_t targets = 0, residues = 0;
  for (;;) {
    TargetBlock block;
    const auto more = reader.read_block(block, 50);
    if (!more) require(!whole && !more.error().message.empty());
    if (!more || !*more) break;
    for (std::size_t i = 0; i < block.size(); ++i) {
      const TargetView t = block[i];
      require(t.residues.data()[t.residues.size()] == kPaddingCode);
      require(t.residues.data()[-1] == kPaddingCode);
      for (const Residue x : t.residues) require(x < alphabet.Kp);
      require(std::string(t.name).size() + std::string(t.accession).size() +
                  std::string(t.description).size() <=
              bytes.size());
      residues += t.residues.size();
      ++targets;
    }
  }
  if (!whole) return;
  require(targets == (*database)->summary().targets);
  require(residues == (*database)->summary().residues);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  read_everything(bytes);
  // Again with a consistent header, without which nearly every input is refused at once.
  using hmmjit::database_format::Header;
  if (size < sizeof(Header)) return 0;
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.file_bytes = size;
  header.checksum = hmmjit::checksum(&header, offsetof(Header, checksum));
  std::memcpy(bytes.data(), &header, sizeof header);
  read_everything(bytes);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using namespace hmmjit;
  const std::string path = "/tmp/hmmjit-fuzz-" + std::to_string(::getpid()) + ".hjdb";
  auto writer = DatabaseWriter::create(path, amino_alphabet());
  require(writer.has_value());
  TargetBlock block;
  for (std::uint32_t length = 0; length < 40; length += 5) {
    block.begin_target("target" + std::to_string(length), length % 2 ? "ACC" : "", "described");
    block.append(std::vector<Residue>(length, static_cast<Residue>(length % 29)));
    block.end_target();
  }
  require(writer->add(block).has_value());
  require(writer->finish("program fuzz\n").has_value());
  std::ifstream stream(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  std::filesystem::remove(path);
  require(!bytes.empty());
  return {bytes};
}

std::vector<std::string> fuzz_folders() { return {}; }
