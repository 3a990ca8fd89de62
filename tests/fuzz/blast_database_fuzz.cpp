// For any bytes of its three files, a volume of a BLAST database, of either kind, is refused or
// read within its bounds, with the same result for pieces of any size.

#include "io/blast_database.hpp"
#include "io/sequence_file.hpp"
#include "tests/fuzz/entry.hpp"
#include "tests/support/blast_volume.hpp"

namespace {

using namespace hmmjit;

// Two bytes for each of two lengths, then the files.
BlastVolumeBytes split(std::string_view input) {
  const auto number = [&](std::size_t at) {
    return std::size_t{static_cast<unsigned char>(input[at])} << 8 |
           static_cast<unsigned char>(input[at + 1]);
  };
  const std::size_t index = number(0), headers = number(2);
  input.remove_prefix(4);
  BlastVolumeBytes out;
  out.index = input.substr(0, index);
  input.remove_prefix(out.index.size());
  out.headers = input.substr(0, headers);
  out.sequences = input.substr(out.headers.size());
  return out;
}

std::string join(const std::array<std::string, 3>& files) {
  std::string out;
  for (int i = 0; i < 2; ++i) {
    out += static_cast<char>(files[i].size() >> 8);
    out += static_cast<char>(files[i].size());
  }
  return out + files[0] + files[1] + files[2];
}

std::string read(const BlastVolumeBytes& bytes, const Alphabet& alphabet,
                 std::uint64_t block_residues) {
  auto source = open_blast_volume("fuzz", bytes, alphabet);
  if (!source) return source.error().to_string();
  auto reader = SequenceReader::open(std::move(*source), {alphabet, SequenceFormat::kNcbi});
  if (!reader) return reader.error().to_string();
  std::string all;
  for (;;) {
    TargetBlock block;
    const auto more = reader->read_block(block, block_residues);
    for (std::size_t i = 0; i < block.size(); ++i) {
      const TargetView t = block[i];
      require(!t.name.empty());
      require(t.residues.data()[t.residues.size()] == kPaddingCode);
      for (const Residue x : t.residues) require(x < alphabet.Kp);
      all.append(t.name).append("|").append(t.accession).append("|").append(t.description);
      all.append("|").append(reinterpret_cast<const char*>(t.residues.data()), t.residues.size());
    }
    if (!more) {
      require(more.error().code == ErrorCode::kInput);
      return all + more.error().to_string();
    }
    if (!*more) return all;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  const BlastVolumeBytes bytes = split({reinterpret_cast<const char*>(data), size});
  for (const Alphabet* alphabet : {&amino_alphabet(), &dna_alphabet()})
    require(read(bytes, *alphabet, 1) == read(bytes, *alphabet, 1000));
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  using namespace hmmjit::test_support;
  std::vector<BlastRecord> records;
  const std::string own_number =
      ber_member(10, ber(0x30, ber_member(0, ber_string("BL_ORD_ID")) +
                                   ber_member(1, ber_member(0, ber_integer("\x07")))));
  for (const bool open : {false, true}) {
    records.push_back({definition_line("first words", own_number, open), "\x01\x02\x03"});
    records.push_back(
        {definition_line("x", ber_member(7, text_identifier("NAME", "P12345")), open) +
             definition_line("y", ber_member(9, text_identifier("", "WP_1")), open),
         std::string(40, '\x0a')});
    records.push_back(
        {definition_line("", ber_member(0, ber_member(1, ber_string("lcl"))), open), ""});
  }
  std::vector<std::string> out;
  using Kind = BlastResidues;
  for (const Kind kind : {Kind::kProteins, Kind::kNucleotides, Kind::kNucleotidesWide}) {
    for (const std::uint32_t version : {4u, 5u})
      out.push_back(join(blast_volume(records, version, kind)));
  }
  return out;
}

std::vector<std::string> fuzz_folders() { return {}; }
