// Bytes that arrive in pieces of any size give the same frames, or the same refusal.
#include "hmmjit/server_wire.hpp"
#include "tests/fuzz/entry.hpp"

namespace {

std::string frames_of(std::string_view bytes, std::size_t piece) {
  std::string seen;
  hmmjit::tools::FrameReader frames(
      [&](const nlohmann::json& head) -> hmmjit::Status {
        seen += '\n' + hmmjit::tools::frame_head(head);
        return {};
      },
      [&](std::string_view part) -> hmmjit::Status {
        seen += part;
        return {};
      });
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    if (const auto taken = frames.feed(bytes.substr(0, piece)); !taken) {
      require(!taken.error().message.empty());
      return seen + "refused";
    }
  }
  return seen + (frames.complete() ? "complete" : "incomplete");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = frames_of(bytes, bytes.size());
  for (const std::size_t piece : {1, 7}) require(frames_of(bytes, piece) == whole);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {"{\"command\":\"search\",\"bytes\":4}\n/ a {\"input\":\"query\",\"bytes\":2}\nHM",
          "{\"output\":\"\",\"bytes\":3}\nabc{\"exit\":0}\n", "{\"bytes\":18446744073709551615}\n",
          "{\"bytes\":-1}\n", "[]\n{}\n"};
}

std::vector<std::string> fuzz_folders() { return {}; }
