// Entries of the kernel cache and bundles, unchanged and with recomputed seals, as a malicious
// writer makes them. An accepted one can be written and read again. The first byte selects 'e' an
// entry or 'b' a bundle.
#include "cache/bundle.hpp"
#include "cache/compression.hpp"
#include "cache/entry_format.hpp"
#include "core/coding.hpp"
#include "core/digest.hpp"
#include "tests/fuzz/entry.hpp"

namespace {

using namespace hmmjit::cache;

void check(const DecodedEntry& decoded) {
  require(!decoded.entry.payload.empty());
  const auto again = encode_entry(decoded.key, decoded.entry);
  require(again.has_value());
  const auto second = decode_entry(*again, Attachments::kLoad);
  require(second.has_value() && second->key == decoded.key && second->entry == decoded.entry);
}

void read_entry(std::string_view bytes) {
  (void)is_other_version(bytes);
  const auto decoded = decode_entry(bytes, Attachments::kLoad);
  if (!decoded) return require(!decoded.error().message.empty());
  check(*decoded);
}

void read_as_bundle(std::string_view bytes) {
  int taken = 0;
  const auto status = read_bundle(bytes, [&](DecodedEntry&& decoded, std::string_view raw) {
    ++taken;
    check(decoded);
    read_entry(raw);
    return hmmjit::Status{};
  });
  require(status ? taken > 0 : taken == 0);
}

constexpr std::size_t kSeal = 16;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool bundle = data[0] == 'b';
  const auto read = bundle ? read_as_bundle : read_entry;
  read(bytes);
  constexpr std::size_t kTotalSizeAt = 16;
  if (bytes.size() < kTotalSizeAt + 8 + kSeal) return 0;
  if (!bundle) {
    const std::uint64_t total = bytes.size();
    bytes.replace(kTotalSizeAt, 8, reinterpret_cast<const char*>(&total), 8);
  }
  bytes.resize(bytes.size() - kSeal);
  bytes += hmmjit::digest_of(bytes).bytes();
  read(bytes);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  Entry entry;
  entry.attributes = {{"registers", "40"}, {"spills", "0"}};
  entry.log = std::string(200, 'l');
  entry.attachments = {{"plan", "{}"}, {"ptx", std::string(300, 'p')}};
  entry.payload = "the image of a kernel";
  CacheKey key;
  key.add("source", "extern \"C\" __global__ void x() {}");
  key.add("options", "-arch=sm_90");
  std::vector<std::string> seeds = {"e", "b"};
  seeds[0] += encode_entry(key, entry).value();
  const std::string stored = seeds[0].substr(1);
  const std::string packed = compress(stored);
  std::string bundle("HMMJITKB");
  hmmjit::put_bytes(bundle, kBundleFormatVersion);
  for (int i = 0; i < 2; ++i) {
    hmmjit::put_bytes(bundle, std::uint8_t{'E'});
    hmmjit::put_bytes(bundle, static_cast<std::uint64_t>(packed.size()));
    hmmjit::put_bytes(bundle, static_cast<std::uint64_t>(stored.size()));
    bundle += packed;
  }
  hmmjit::put_bytes(bundle, std::uint8_t{'Z'});
  hmmjit::put_bytes(bundle, std::uint64_t{2});
  seeds[1] += bundle;
  seeds[1] += hmmjit::digest_of(bundle).bytes();
  require(read_bundle(std::string_view(seeds[1]).substr(1), [](DecodedEntry&&, std::string_view) {
            return hmmjit::Status{};
          }).has_value());
  return seeds;
}

std::vector<std::string> fuzz_folders() { return {}; }
