#include "io/hmm_file.hpp"
#include "tests/fuzz/entry.hpp"

using namespace hmmjit;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto source = open_memory_source("fuzz", {reinterpret_cast<const char*>(data), size}, 4096);
  if (!source) return 0;
  auto reader = HmmReader::open(std::move(*source));
  if (!reader) {
    require(!reader.error().message.empty());
    return 0;
  }
  while (true) {
    auto hmm = reader->next();
    if (!hmm) {
      require(!hmm.error().message.empty());
      require(hmm.error().to_string().find('\n') == std::string::npos);
      break;
    }
    if (!*hmm) break;
    const Hmm& model = **hmm;
    std::size_t M = static_cast<std::size_t>(model.M),
                K = static_cast<std::size_t>(model.alphabet->K);
    require(model.M > 0 && !model.name.empty());
    require(model.match.size() == (M + 1) * K && model.insert.size() == (M + 1) * K);
    require(model.transition.size() == (M + 1) * kTransitions);
    require(model.consensus.size() == M);
    for (const std::string* s : {&model.rf, &model.mm, &model.cs}) {
      require(s->empty() || s->size() == M);
    }
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::string emissions;
  for (int i = 0; i < 20; ++i) emissions += " 2.99573";
  std::string body = "HMM A\n m\n COMPO" + emissions + "\n" + emissions + "\n 0 1 2 3 4 0 *\n 1" +
                     emissions + " 1 a - - -\n" + emissions + "\n 0 1 * 3 4 0 *\n//\n";
  std::string header = "NAME x\nACC y\nDESC z\nLENG 1\nALPH amino\nRF no\nGA 1 2;\n";
  const auto version2 = [](const std::string& alphabet, int letters) {
    std::string scores;
    for (int i = 0; i < letters; ++i) scores += " -12";
    return "HMMER2.0\nNAME x\nLENG 1\nALPH " + alphabet + "\nNULE" + scores +
           "\nHMM\n m\n 1 * 2\n 1" + scores + "\n -\n - * * * * * * * * *\n//\n";
  };
  return {"HMMER3/f [x]\n" + header + body, "HMMER3/a\n" + header + body,
          "HMMER3/f\n" + header + body + "HMMER3/f\n" + header + body, version2("Amino", 20),
          version2("Nucleic", 4)};
}

std::vector<std::string> fuzz_folders() {
  return {"hmm_bad", "hmm_odd", "hmm_versions", "hmm_binary", "hmm_nucleotide"};
}
