// The result must not depend on the division of bytes into chunks and of targets into blocks.
#include "tests/fuzz/sequence_checks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (bytes.starts_with("\x1f\x8b") || bytes.starts_with("\x28\xb5\x2f\xfd")) return 0;
  // Files of other kinds are recognised by the first chunk only.
  if (hmmjit::recognise_other_file(bytes)) return 0;
  // Whether \r alone ends lines is known from the first chunk with a line end.
  constexpr std::size_t kChunk = 61;
  const std::size_t r = bytes.find('\r'), n = bytes.find('\n');
  if (n != bytes.npos && r < n && (n != r + 1 || n % kChunk == 0)) return 0;
  auto format = hmmjit::SequenceFormat::kFasta;
  std::string whole = read_all(bytes, format, std::size_t{1} << 20, std::uint64_t{1} << 40);
  require(read_all(bytes, format, kChunk, 100) == whole);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {">a one\nACDEFGHIKLMNPQRSTVWY\nACD\n>b\x01x\nac*_.~\n>c", "\n\n> x y\r\nAC DE\r\n>z"};
}

std::vector<std::string> fuzz_folders() { return {"seq_odd", "seq_bad", "seq_bad_real"}; }
