// Deterministic replacement of a fuzzer: feeds the seeds of one entry and mutates them with a fixed
// random sequence. Arguments: "-n COUNT [FOLDER]", the number of mutated inputs and a folder whose
// files are seeds as well; or files to feed as they are (to reproduce a finding).
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "tests/fuzz/entry.hpp"
#include "tests/support/shared_data.hpp"

namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void feed(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

class Mutator {
 public:
  explicit Mutator(const std::vector<std::string>& seeds) : seeds_(seeds) {}

  std::string next() {
    std::string s = seeds_[below(seeds_.size())];
    std::size_t changes = 1 + below(4);
    for (std::size_t i = 0; i < changes; ++i) change(s);
    return s;
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }

  void change(std::string& s) {
    const std::string_view tokens[] = {"\n",
                                       ">",
                                       "//",
                                       " ",
                                       "*",
                                       "-1",
                                       "0",
                                       "99999999999",
                                       "nan",
                                       "\r",
                                       std::string_view("\0", 1),
                                       "\xff",
                                       "#",
                                       "1e999"};
    std::size_t at = below(s.size() + 1);
    switch (below(8)) {
      case 0:  // flip a bit
        if (at < s.size()) s[at] = static_cast<char>(s[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < s.size()) s[at] = static_cast<char>(random_());
        break;
      case 2:
        s.resize(at);
        break;
      case 3:
        s.erase(at, below(40));
        break;
      case 4:
        s.insert(at, tokens[below(std::size(tokens))]);
        break;
      case 5: {  // repeat a piece
        std::string piece = s.substr(at, below(200));
        s.insert(below(s.size() + 1), piece);
        break;
      }
      case 6: {  // splice in another seed
        const std::string& other = seeds_[below(seeds_.size())];
        s = s.substr(0, at) + other.substr(below(other.size() + 1));
        break;
      }
      case 7: {  // drop a line
        std::size_t begin = s.find('\n', at);
        if (begin != s.npos) s.erase(begin, s.find('\n', begin + 1) - begin);
        break;
      }
    }
    constexpr std::size_t kLongest = 1 << 17;
    if (s.size() > kLongest) s.resize(kLongest);
  }

  const std::vector<std::string>& seeds_;
  std::mt19937_64 random_{20261121};
};

}  // namespace

int main(int argc, char** argv) {
  int count = 2000;
  const bool mutating = argc > 2 && std::strcmp(argv[1], "-n") == 0;
  if (mutating) {
    count = std::atoi(argv[2]);
  } else if (argc > 1) {
    for (int i = 1; i < argc; ++i) feed(read_file(argv[i]));
    return 0;
  }
  std::vector<std::string> seeds = fuzz_seeds();
  const auto add_folder = [&seeds](const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.file_size() < 50000) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());  // the order of a directory is not fixed
    for (const auto& file : files) seeds.push_back(read_file(file));
  };
  if (mutating && argc > 3 && std::filesystem::is_directory(argv[3])) add_folder(argv[3]);
  auto shared = hmmjit::test_support::shared_folder();
  if (!shared) std::puts("reference data not found (set HMMJIT_SHARED): built-in seeds only");
  for (const std::string& folder : fuzz_folders()) {
    if (shared) add_folder(*shared / "data/edge" / folder);
  }
  for (const std::string& seed : seeds) feed(seed);
  Mutator mutator(seeds);
  for (int i = 0; i < count; ++i) feed(mutator.next());
  std::printf("%zu seeds, %d mutated inputs\n", seeds.size(), count);
  return 0;
}
