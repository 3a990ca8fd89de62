// The key of a cached kernel: all inputs of its compile as an ordered list of named components.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/digest.hpp"
#include "core/error.hpp"

namespace hmmjit::cache {

struct KeyComponent {
  std::string name;   ///< short, unique within a key, e.g. "target"
  std::string value;  ///< complete value (any bytes), not a hash of it
  bool operator==(const KeyComponent&) const = default;
};

/// An ordered list of named components. Every key starts with the component "schema", the version
/// of the entry format: files of different formats never share a name. Keeps whole values: a
/// look-up compares full records, which tells keys with equal digests apart. Immutable once built:
/// threads may share it.
class CacheKey {
 public:
  CacheKey();

  /// Appends a component; the order is part of the key. A repeated or empty name makes the key
  /// invalid: it matches nothing and cannot be published.
  CacheKey& add(std::string name, std::string value);

  std::span<const KeyComponent> components() const { return components_; }
  /// The value of a component; nullptr if there is none.
  const std::string* find(std::string_view name) const;
  /// The canonical serialisation (docs/cache-format.md, "key record").
  const std::string& record() const { return record_; }
  const Digest& digest() const { return digest_; }
  bool valid() const { return valid_; }

  /// Parses a canonical record; fails with kInput if it is malformed.
  static Result<CacheKey> from_record(std::string_view record);

  bool operator==(const CacheKey& other) const { return record_ == other.record_; }

 private:
  struct Empty {};
  explicit CacheKey(Empty) {}

  std::vector<KeyComponent> components_;
  std::string record_;
  Digest digest_;
  bool valid_ = true;
};

struct KeyDifference {
  std::string component;
  Digest first, second;  ///< component digests (zero where absent)
  std::string detail;    ///< short values in full, otherwise the first line that differs
};

/// The components in which two keys differ, in the order of the first key; empty if the keys are
/// equal.
std::vector<KeyDifference> explain(const CacheKey& first, const CacheKey& second);

/// One line: "options: '-a' became '-b'; target: ...".
std::string to_string(std::span<const KeyDifference> differences);

}  // namespace hmmjit::cache
