// For any bytes, a record of a part file is refused or read within its bounds; writing it again
// gives the same bytes.
#include "parts/part_format.hpp"
#include "tests/fuzz/entry.hpp"

namespace {

using namespace hmmjit;
using namespace hmmjit::parts;

void read_hit(std::string_view bytes) {
  Decoder decoder(bytes);
  Hit hit;
  if (!decode_hit(decoder, hit)) return;
  hit.domain_flags.assign(hit.score.domains.size(), {});
  require(hit.score.best_domain < hit.score.domains.size());
  std::string again;
  encode_hit(hit, true, again);
  Decoder second(again);
  Hit other;
  require(decode_hit(second, other) && second.left() == 0);
  require(other.name == hit.name && other.score.domains.size() == hit.score.domains.size());
}

void read_head(std::string_view bytes, bool describe) {
  Decoder decoder(bytes);
  ModelHead head;
  if (!decode_head(decoder, describe, head)) return;
  std::string content, rest;
  encode_head(head, describe, content, rest);
  const std::string again = content + rest;
  Decoder second(again);
  ModelHead other;
  require(decode_head(second, describe, other) && second.left() == 0);
  require(other.index == head.index && other.hit_bytes == head.hit_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      read_hit(bytes);
      break;
    case 1:
    case 2:
      read_head(bytes, data[0] % 5 == 1);
      break;
    case 3: {
      PartOrigin origin;
      if (decode_origin(bytes, origin)) require(encode_origin(origin).size() <= bytes.size());
      break;
    }
    default: {
      const auto settings = PartSettings::parse(bytes);
      if (settings) {
        const auto again = PartSettings::parse(settings->text());
        require(again.has_value() && again->text() == settings->text());
      }
    }
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::vector<std::string> seeds;
  Hit hit;
  hit.name = "target";
  hit.length = 500;
  hit.score.domains.resize(3);
  hit.domain_flags.assign(3, {true, true});
  for (domain::Domain& domain : hit.score.domains)
    domain.alignment = {"", "HHH", "abc", "abc", "ABC", "999"};
  encode_hit(hit, true, seeds.emplace_back(1, '\0'));
  ModelHead head;
  head.name = "model";
  head.M = 100;
  head.cutoff = Cutoff{20, 19};
  head.accession = "PF1";
  head.consensus = std::string(100, 'a');
  for (const char describe : {'\1', '\2'}) {
    std::string content, rest;
    encode_head(head, describe == '\1', content, rest);
    seeds.push_back(describe + content + rest);
  }
  PartOrigin origin;
  origin.options = {{"-E", "1"}, {"--max", ""}};
  seeds.push_back('\3' + encode_origin(origin));
  seeds.push_back('\4' + PartSettings{}.text());
  return seeds;
}

std::vector<std::string> fuzz_folders() { return {}; }
