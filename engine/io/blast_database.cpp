#include "io/blast_database.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "core/read_only_file.hpp"
#include "core/text_fields.hpp"
#include "io/sequence_parsing.hpp"

namespace hmmjit {

using namespace sequence_parsing;

namespace {

// ---- definition lines

struct RecordText {
  std::string name, accession, description;
};

// Walks BER elements: a tag byte, then a length, which may be indefinite (two zero bytes then end
// the element). After an error, `failed` is true and the walk ends.
class BerReader {
 public:
  explicit BerReader(std::string_view data) : data_(data) {}

  bool failed() const { return failed_; }

  // True if the current element contains a further one.
  bool more() const {
    if (failed_ || at_ >= end()) return false;
    return frames_.empty() || !frames_.back().indefinite || data_[at_] != '\0';
  }
  std::uint8_t tag() const { return more() ? static_cast<std::uint8_t>(data_[at_]) : 0; }

  // Enters the next element if it has this tag.
  bool enter(std::uint8_t wanted) {
    if (tag() != wanted) return false;
    Frame frame;
    if (!head(frame)) return false;
    if (frames_.size() >= kDeepest) return fail();
    frames_.push_back(frame);
    return true;
  }

  // Skips the rest of the current element and leaves it.
  void leave() {
    while (more()) skip();
    if (failed_) return;
    const Frame frame = frames_.back();
    frames_.pop_back();
    if (frame.indefinite) {
      end_of_contents();
    } else {
      at_ = frame.end;
    }
  }

  // The bytes of a primitive element, if it has this tag.
  std::optional<std::string_view> primitive(std::uint8_t wanted) {
    if (tag() != wanted) return std::nullopt;
    Frame frame;
    if (!head(frame)) return std::nullopt;
    if (frame.indefinite) {
      fail();
      return std::nullopt;
    }
    const std::string_view out = data_.substr(at_, frame.end - at_);
    at_ = frame.end;
    return out;
  }

  // Skips one element with all elements in it.
  void skip() {
    std::size_t open = 0;
    do {
      if (open > 0 && at_ + 1 < end() && data_[at_] == '\0' && data_[at_ + 1] == '\0') {
        at_ += 2;
        --open;
        continue;
      }
      Frame frame;
      if (!head(frame)) return;
      if (frame.indefinite) {
        ++open;
      } else {
        at_ = frame.end;
      }
    } while (open > 0);
  }

 private:
  struct Frame {
    std::size_t end = 0;
    bool indefinite = false;
  };

  std::size_t end() const { return frames_.empty() ? data_.size() : frames_.back().end; }

  bool fail() {
    failed_ = true;
    return false;
  }

  // Reads a tag and a length.
  bool head(Frame& frame) {
    if (failed_ || at_ + 2 > end()) return fail();
    ++at_;
    const auto first = static_cast<std::uint8_t>(data_[at_++]);
    frame.end = end();
    frame.indefinite = first == 0x80;
    if (frame.indefinite) return true;
    std::uint64_t length = first;
    if (first > 0x80) {
      const std::size_t bytes = first & 0x7f;
      if (bytes > 4 || at_ + bytes > end()) return fail();
      length = 0;
      for (std::size_t i = 0; i < bytes; ++i)
        length = length << 8 | static_cast<std::uint8_t>(data_[at_++]);
    }
    if (length > end() - at_) return fail();
    frame.end = at_ + static_cast<std::size_t>(length);
    return true;
  }

  void end_of_contents() {
    if (at_ + 2 > end() || data_[at_] != '\0' || data_[at_ + 1] != '\0') {
      failed_ = true;
      return;
    }
    at_ += 2;
  }

  static constexpr std::size_t kDeepest = 32;  // definition lines nest about ten deep

  std::string_view data_;
  std::size_t at_ = 0;
  std::vector<Frame> frames_;
  bool failed_ = false;
};

constexpr std::uint8_t kInteger = 0x02, kVisibleString = 0x1a, kSequence = 0x30;
// Tag of member or choice n.
constexpr std::uint8_t member(unsigned n) { return static_cast<std::uint8_t>(0xa0 + n); }

// Member n, a string, if present.
std::optional<std::string_view> string_member(BerReader& ber, unsigned n) {
  if (!ber.enter(member(n))) return std::nullopt;
  const auto out = ber.primitive(kVisibleString);
  ber.leave();
  return out;
}

std::optional<std::int64_t> integer(BerReader& ber) {
  const auto bytes = ber.primitive(kInteger);
  if (!bytes || bytes->empty() || bytes->size() > 8) return std::nullopt;
  std::uint64_t value = (static_cast<std::uint8_t>(bytes->front()) & 0x80) != 0 ? ~0ull : 0;
  for (const char c : *bytes) value = value << 8 | static_cast<std::uint8_t>(c);
  return static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> integer_member(BerReader& ber, unsigned n) {
  if (!ber.enter(member(n))) return std::nullopt;
  const auto value = integer(ber);
  ber.leave();
  return value;
}

// Chooses a name as hmmsearch does, among the identifiers of all definition lines of a record (nr
// has one line for each of several identical sequences): the first with both name and accession;
// else the first with either, which becomes the name; else the first local, PDB or other number or
// string; else the first word of the definition line. Drops the versions of accessions. Unlike in
// hmmsearch, PDB chains belong to the name. The description is that of the last definition line.
class Identifiers {
 public:
  void read_line(BerReader& ber) {
    const auto title = string_member(ber, 0);
    if (ber.enter(member(1))) {  // seqid: SEQUENCE OF Seq-id
      if (ber.enter(kSequence)) {
        while (ber.more()) read_identifier(ber);
        ber.leave();
      }
      ber.leave();
    }
    description_ = title.value_or("");
    if (!named() && title) {
      // The first word of the definition line, as in FASTA.
      const auto blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
      const auto word_end = std::ranges::find_if(*title, blank);
      word_ = std::string_view(title->begin(), word_end);
      description_ =
          std::string_view(std::find_if_not(word_end, title->end(), blank), title->end());
    }
  }

  RecordText text() const {
    RecordText out;
    out.description = description_;
    if (name_) {
      out.name = *name_;
      out.accession = accession_.value_or("");
    } else if (accession_) {
      out.name = *accession_;
    } else if (string_id_) {
      out.name = *string_id_;
    } else if (number_id_) {
      out.name = std::to_string(*number_id_);
    } else {
      out.name = word_.empty() ? general_ : word_;
    }
    return out;
  }

 private:
  bool named() const { return name_ || accession_ || string_id_ || number_id_; }

  void keep(std::optional<std::string_view> text) {
    if (text && !string_id_ && !number_id_) string_id_ = std::string(*text);
  }
  void keep(std::optional<std::int64_t> number) {
    if (!string_id_ && !number_id_) number_id_ = number;
  }

  // Seq-id, a CHOICE.
  void read_identifier(BerReader& ber) {
    const std::uint8_t kind = ber.tag();
    if (!ber.enter(kind)) return;
    switch (kind - member(0)) {
      case 0:  // local: Object-id
        if (ber.tag() == member(0)) {
          keep(integer_member(ber, 0));
        } else {
          keep(string_member(ber, 1));
        }
        break;
      case 1:  // gibbsq
        keep(integer(ber));
        break;
      case 3:  // giim: Giimport-id
      case 8:  // patent: Patent-seq-id
        if (ber.enter(kSequence)) {
          keep(integer_member(ber, 0));
          ber.leave();
        }
        break;
      case 10:  // general: Dbtag; hmmsearch takes no name from it
        if (ber.enter(kSequence)) {
          const auto database = string_member(ber, 0);
          if (database && ber.enter(member(1))) {
            const auto number = integer_member(ber, 0);
            const auto tag = string_member(ber, 1);
            if (general_.empty() && (number || tag))
              general_ = fmt::format("gnl|{}|{}", *database,
                                     tag ? std::string(*tag) : std::to_string(*number));
            ber.leave();
          }
          ber.leave();
        }
        break;
      case 14:  // pdb: PDB-seq-id; chains have whole names since letters ran out
        if (ber.enter(kSequence)) {
          if (const auto molecule = string_member(ber, 0)) {
            std::string name(*molecule);
            while (ber.more()) {
              if (ber.tag() != member(3)) {
                ber.skip();
              } else if (const auto chain = string_member(ber, 3)) {
                name.append("_").append(*chain);
              }
            }
            if (!string_id_ && !number_id_) string_id_ = std::move(name);
          }
          ber.leave();
        }
        break;
      case 2:   // gibbmt; hmmsearch then has no name
      case 11:  // gi; the same
        if (const auto number = integer(ber); number && general_.empty())
          general_ = fmt::format("{}|{}", kind == member(2) ? "bbm" : "gi", *number);
        break;
      default:  // genbank, embl, pir, swissprot, refseq, ddbj, prf, tpg, tpe, tpd, gpipe, ...
        if (kind >= member(4) && kind <= member(19)) read_text_identifier(ber);
    }
    ber.leave();
  }

  // Textseq-id
  void read_text_identifier(BerReader& ber) {
    if (!ber.enter(kSequence)) return;
    const auto name = string_member(ber, 0);
    const auto accession = string_member(ber, 1);
    ber.leave();
    const bool both = name && accession;
    if (both ? !(name_ && accession_) : !(name_ || accession_)) {
      name_ = name;
      accession_ = accession;
    }
  }

  std::optional<std::string_view> name_, accession_;
  std::optional<std::string> string_id_;
  std::optional<std::int64_t> number_id_;
  std::string general_;
  std::string_view word_, description_;
};

// nullopt: the bytes are damaged.
std::optional<RecordText> read_definition_lines(std::string_view bytes) {
  BerReader ber(bytes);
  Identifiers identifiers;
  if (!ber.enter(kSequence)) return std::nullopt;
  while (ber.more()) {
    if (!ber.enter(kSequence)) return std::nullopt;
    identifiers.read_line(ber);
    ber.leave();
  }
  ber.leave();
  if (ber.failed()) return std::nullopt;
  return identifiers.text();
}

// ---- volumes

constexpr const char* kAgain = "copy or make the database again";

struct Kind {
  const char* name;
  std::uint32_t type;  // as stored in the index
  std::array<const char*, 3> suffixes;
  const char* alias;
  std::string_view letters;  // the letter of each code
};
// NCBIstdaa
constexpr Kind kProteins{
    "proteins", 1, {".pin", ".phr", ".psq"}, ".pal", "-ABCDEFGHIKLMNPQRSTVWXYZU*OJ"};
// NCBI4na
constexpr Kind kNucleotides{"nucleotides", 0, {".nin", ".nhr", ".nsq"}, ".nal", "-ACMGRSVTWYHKDBN"};

const Kind& kind_of(const Alphabet& alphabet) {
  return alphabet.type == AlphabetType::kAmino ? kProteins : kNucleotides;
}

std::uint32_t big_endian(const char* bytes) {
  std::uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return std::endian::native == std::endian::little ? __builtin_bswap32(value) : value;
}

// The three files of a volume, mapped or in memory.
class Volume {
 public:
  static Result<Volume> open(const Kind& kind, const std::string& base) {
    Volume out(kind, base);
    for (std::size_t i = 0; i < out.files_.size(); ++i) {
      HMMJIT_ASSIGN(out.files_[i], MappedFile::open(base + kind.suffixes[i]));
    }
    const auto view = [&](std::size_t i) {
      return std::string_view(out.files_[i].bytes().data(), out.files_[i].bytes().size());
    };
    out.bytes_ = {view(0), view(1), view(2)};
    HMMJIT_TRY(out.read_index());
    return out;
  }

  static Result<Volume> of_bytes(const Kind& kind, std::string name,
                                 const BlastVolumeBytes& bytes) {
    Volume out(kind, std::move(name));
    out.bytes_ = bytes;
    HMMJIT_TRY(out.read_index());
    return out;
  }

  std::uint32_t size() const { return records_; }

  // A record without its residues; `residues` is their number.
  struct Record {
    RecordText text;
    std::string_view codes;        // one byte per protein residue, or per four nucleotides
    std::string_view ambiguities;  // see append()
    std::uint32_t residues;
    std::size_t bytes;  // in the header and sequence files
  };
  Result<Record> record(std::uint32_t i) const;
  // Appends the codes of residues [from, to) of record `i`.
  Status append(std::uint32_t i, const Record& record, std::uint32_t from, std::uint32_t to,
                std::vector<Residue>& out) const;

 private:
  Volume(const Kind& kind, std::string name) : kind_(&kind), name_(std::move(name)) {}

  std::unexpected<Error> damaged(std::string_view what, std::size_t file) const {
    return fail(ErrorCode::kInput, fmt::format("the BLAST database is damaged: {}", what),
                name_ + kind_->suffixes[file], kAgain);
  }
  std::unexpected<Error> outside(std::uint32_t i, std::size_t file) const {
    return damaged(fmt::format("record {} lies outside the file", i), file);
  }

  Status read_index();

  // The bytes of `file` between two offsets that the index stores.
  std::optional<std::string_view> between(std::size_t from_at, std::size_t to_at,
                                          std::string_view file) const {
    const std::uint32_t from = big_endian(bytes_.index.data() + from_at);
    const std::uint32_t to = big_endian(bytes_.index.data() + to_at);
    if (from > to || to > file.size()) return std::nullopt;
    return file.substr(from, to - from);
  }

  const Kind* kind_;
  std::string name_;
  std::array<MappedFile, 3> files_;
  BlastVolumeBytes bytes_;
  std::uint32_t records_ = 0;
  // Positions in the index.
  std::size_t header_table_ = 0, sequence_table_ = 0, ambiguity_table_ = 0;
};

Status Volume::read_index() {
  const std::string_view index = bytes_.index;
  std::size_t at = 0;
  bool whole = true;
  const auto number = [&]() -> std::uint32_t {
    if (index.size() - at < 4) {
      whole = false;
      return 0;
    }
    at += 4;
    return big_endian(index.data() + at - 4);
  };
  const auto pass = [&](std::size_t bytes) {
    if (index.size() - at < bytes) {
      whole = false;
    } else {
      at += bytes;
    }
  };
  const std::uint32_t version = number();
  if (whole && version != 4 && version != 5) {
    return fail(ErrorCode::kInput, "no BLAST database of version 4 or 5",
                name_ + kind_->suffixes[0],
                "make it with makeblastdb, or convert it: blastdbcmd -db NAME -entry all");
  }
  const std::uint32_t type = number();
  if (whole && type != kind_->type)
    return damaged(fmt::format("its index is not one of {}", kind_->name), 0);
  if (version == 5) pass(4);         // volume number
  pass(number());                    // title
  if (version == 5) pass(number());  // name of the accession index
  pass(number());                    // date
  records_ = number();
  pass(8 + 4);  // total residues (little-endian), residues of the longest sequence
  if (!whole) return damaged("its index ends early", 0);
  const std::size_t table = (std::size_t{records_} + 1) * 4;
  header_table_ = at;
  sequence_table_ = at + table;
  ambiguity_table_ = kind_ == &kNucleotides ? at + 2 * table : at + table;
  if (index.size() < ambiguity_table_ + table) return damaged("its index ends early", 0);
  return {};
}

Result<Volume::Record> Volume::record(std::uint32_t i) const {
  const std::size_t at = std::size_t{i} * 4;
  const auto lines = between(header_table_ + at, header_table_ + at + 4, bytes_.headers);
  if (!lines) return outside(i, 1);
  auto text = read_definition_lines(*lines);
  if (!text) return damaged(fmt::format("the definition line of record {} cannot be read", i), 1);
  Record out{.text = *std::move(text), .codes = {}, .ambiguities = {}, .residues = 0, .bytes = 0};
  const bool packed = kind_ == &kNucleotides;
  const auto codes =
      between(sequence_table_ + at, ambiguity_table_ + at + (packed ? 0 : 4), bytes_.sequences);
  // A zero byte follows every protein; the last byte of packed residues holds 0 to 3 of them.
  if (!codes || codes->empty() || (!packed && codes->back() != '\0')) return outside(i, 2);
  out.codes = *codes;
  std::size_t residues = codes->size() - 1;
  if (packed) {
    residues = 4 * residues + (static_cast<std::uint8_t>(codes->back()) & 3);
    const auto rest = between(ambiguity_table_ + at, sequence_table_ + at + 4, bytes_.sequences);
    if (!rest) return outside(i, 2);
    out.ambiguities = *rest;
  }
  if (residues > std::numeric_limits<std::uint32_t>::max()) return outside(i, 2);
  out.residues = static_cast<std::uint32_t>(residues);
  out.bytes = lines->size() + out.codes.size() + out.ambiguities.size();
  return out;
}

// Two bits encode one of ACGT; the first residue is in the highest bits. Runs of other residues
// follow: the number of words, then one word a run (code, length - 1 and position in 4, 4 and 24
// bits) or, if the highest bit of the number is set, two (code and length - 1 in 4 and 12 bits, 16
// unused bits; position).
Status Volume::append(std::uint32_t i, const Record& record, std::uint32_t from, std::uint32_t to,
                      std::vector<Residue>& out) const {
  if (kind_ != &kNucleotides) {
    const std::string_view codes = record.codes.substr(from, to - from);
    out.insert(out.end(), codes.begin(), codes.end());
    return {};
  }
  const std::size_t begin = out.size();
  for (std::uint32_t r = from; r < to; ++r) {
    const auto four = static_cast<std::uint8_t>(record.codes[r / 4]);
    out.push_back(static_cast<Residue>(1 << (four >> (6 - 2 * (r % 4)) & 3)));
  }
  if (record.ambiguities.empty()) return {};
  const auto word = [&](std::size_t w) { return big_endian(record.ambiguities.data() + 4 * w); };
  const std::size_t words = record.ambiguities.size() / 4;
  const bool wide = words > 0 && (word(0) & 0x80000000u) != 0;
  const std::size_t last = words > 0 ? word(0) & 0x7fffffffu : 0;
  if (last >= words) return outside(i, 2);
  for (std::size_t w = 1; w + (wide ? 1 : 0) <= last; w += wide ? 2 : 1) {
    const std::uint64_t first = wide ? word(w + 1) : word(w) & 0xffffffu;
    const std::uint64_t end = first + 1 + (wide ? word(w) >> 16 & 0xfff : word(w) >> 24 & 0xf);
    if (end > record.residues) return outside(i, 2);
    for (std::uint64_t r = std::max<std::uint64_t>(first, from);
         r < std::min<std::uint64_t>(end, to); ++r)
      out[begin + static_cast<std::size_t>(r - from)] = static_cast<Residue>(word(w) >> 28);
  }
  return {};
}

// ---- aliases

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }
bool has_kind(const std::string& path, const Kind& kind) {
  return exists(path + kind.suffixes[0]) || exists(path + kind.alias);
}

// The words of a line; a double-quoted word may contain blanks.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == line.npos) return out;
    line.remove_prefix(begin);
    const bool quoted = line.front() == '"';
    if (quoted) line.remove_prefix(1);
    const std::size_t end = std::min(line.find_first_of(quoted ? "\"" : " \t\r"), line.size());
    out.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(end + (quoted ? 1 : 0), line.size()));
  }
}

// Keys of an alias that do not restrict its sequences.
constexpr std::array<std::string_view, 8> kDescriptive{
    "TITLE",      "NSEQ",         "LENGTH",   "MAXLEN",
    "STATS_NSEQ", "STATS_TOTLEN", "MASKLIST", "ALIAS_FILE_VERSION"};

// Adds the database's volumes to `volumes`.
Status find_volumes(const Kind& kind, const std::string& path, int depth,
                    std::vector<std::string>& volumes) {
  if (exists(path + kind.suffixes[0])) {
    // The databases of an alias may share volumes.
    if (std::ranges::find(volumes, path) == volumes.end()) volumes.push_back(path);
    return {};
  }
  const std::string alias = path + kind.alias;
  if (!exists(alias)) {
    if (const Kind& other = &kind == &kProteins ? kNucleotides : kProteins; has_kind(path, other)) {
      return fail(ErrorCode::kInput, fmt::format("a BLAST database of {}", other.name), path,
                  fmt::format("give one of {} (hmmjit db: --alphabet)", kind.name));
    }
    return fail(ErrorCode::kInput,
                fmt::format("no BLAST database of {}: neither {} nor {} is there", kind.name,
                            kind.suffixes[0], kind.alias),
                path, "name it without the ending of its files");
  }
  if (depth > 8) return fail(ErrorCode::kInput, "aliases name one another", alias, kAgain);
  HMMJIT_ASSIGN(const std::string text, read_whole_file(alias));
  std::vector<std::string> names;
  for (std::string_view rest = text; !rest.empty();) {
    const std::vector<std::string> words = words_of(take_line(&rest));
    if (words.empty() || words[0].starts_with("#")) continue;
    if (words[0] == "DBLIST") {
      names.assign(words.begin() + 1, words.end());
    } else if (std::ranges::find(kDescriptive, words[0]) == kDescriptive.end()) {
      return fail(ErrorCode::kInput,
                  fmt::format("the alias shows a part of the database only ({})", words[0]), alias,
                  "make FASTA of it: blastdbcmd -db NAME -entry all");
    }
  }
  if (names.empty()) return fail(ErrorCode::kInput, "the alias names no database", alias, kAgain);
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "" : path.substr(0, slash + 1);
  for (const std::string& name : names) {
    HMMJIT_TRY(
        find_volumes(kind, name.starts_with('/') ? name : folder + name, depth + 1, volumes));
  }
  return {};
}

// ---- the records

// Carries the volumes to BlastParser. Delivers no bytes.
class BlastSource final : public ByteSource {
 public:
  // `first` is volumes[0], already opened.
  BlastSource(const Kind& kind, std::string name, std::vector<std::string> volumes, Volume first)
      : kind_(kind), volumes_(std::move(volumes)), volume_(std::move(first)) {
    name_ = std::move(name);
  }

  Result<std::span<const char>> next() override { return std::span<const char>(); }
  Status rewind() override { return at_ != 0 ? go_to(0) : Status(); }
  bool rewindable() const override { return true; }

  const Volume& volume() const { return volume_; }
  // Opens the next volume; false after the last.
  Result<bool> advance() {
    if (at_ + 1 == volumes_.size()) return false;
    HMMJIT_TRY(go_to(at_ + 1));
    return true;
  }

 private:
  Status go_to(std::size_t volume) {
    HMMJIT_ASSIGN(volume_, Volume::open(kind_, volumes_[volume]));
    at_ = volume;
    return {};
  }

  const Kind& kind_;
  std::vector<std::string> volumes_;
  Volume volume_;
  std::size_t at_ = 0;  // index of volume_ in volumes_
};

class BlastParser final : public Parser {
 public:
  BlastParser(BufferedInput& input, const Alphabet& alphabet)
      : input_(input), source_(dynamic_cast<BlastSource*>(&input.source())), alphabet_(alphabet) {
    codes_.fill(kInvalidCode);
    const std::string_view letters = kind_of(alphabet).letters;
    for (std::size_t i = 1; i < letters.size(); ++i)
      codes_[i] = alphabet.digit[static_cast<unsigned char>(letters[i])];
  }

  void reset() override { records_ = next_ = 0; }

  Status read(TargetBlock& block, std::uint64_t residues, std::uint64_t targets) override {
    if (source_ == nullptr)
      return fail(ErrorCode::kInput, "a BLAST database is read from its files only", input_.name(),
                  "give its name, without the ending of its files");
    while (!block.full(residues, targets)) {
      if (next_ == source_->volume().size()) {
        HMMJIT_ASSIGN(const bool more, source_->advance());
        if (!more) return {};
        next_ = 0;
      } else {
        HMMJIT_TRY(read_record(block));
        ++next_;
        ++records_;
      }
    }
    return {};
  }

 private:
  std::string where() const { return fmt::format("{}, record {}", input_.name(), records_); }

  Status read_record(TargetBlock& block) {
    HMMJIT_ASSIGN(const Volume::Record record, source_->volume().record(next_));
    const auto& [name, accession, description] = record.text;
    for (const std::string* text : {&name, &accession, &description}) {
      if (has_nul(*text)) return nul_byte(where(), name);
    }
    if (name.empty())
      return fail(ErrorCode::kInput, "a record without a name", where(),
                  "give every record a name");
    if (record.residues > kLongestTarget) return too_long(where(), name);
    if (record.residues > longest_) return does_not_fit(where(), name, record.residues);
    block.begin_target(name, accession, description);
    if (Status status = append_residues(record, block); !status) {
      block.abandon_target();
      return status;
    }
    block.end_target();
    input_.count(record.bytes);
    return {};
  }

  Status append_residues(const Volume::Record& record, TargetBlock& block) {
    std::uint32_t from = 0;
    do {  // also without residues: append checks the record
      const std::uint32_t to = from + std::min(kPiece, record.residues - from);
      piece_.clear();
      HMMJIT_TRY(source_->volume().append(next_, record, from, to, piece_));
      for (Residue& code : piece_) {
        const Residue digital = codes_[code];
        if (digital == kInvalidCode) {
          if (code == 0) return illegal_character(where(), record.text.name, '-', alphabet_);
          return fail(ErrorCode::kInput, "the BLAST database is damaged: no residue has this code",
                      where(), kAgain);
        }
        code = digital;
      }
      block.append(piece_);
      from = to;
    } while (from < record.residues);
    return {};
  }

  static constexpr std::uint32_t kPiece = std::uint32_t{1} << 20;

  BufferedInput& input_;
  BlastSource* source_;  // null: the input is no BLAST database
  const Alphabet& alphabet_;
  std::array<Residue, 256> codes_;
  std::vector<Residue> piece_;
  std::uint32_t next_ = 0;     // record of the volume
  std::uint64_t records_ = 0;  // records read so far, of all volumes
};

}  // namespace

bool is_blast_database(const std::string& path) {
  return path != "-" && (has_kind(path, kProteins) || has_kind(path, kNucleotides));
}

Result<std::unique_ptr<ByteSource>> open_blast_database(const std::string& path,
                                                        const Alphabet& alphabet) {
  if (path == "-")
    return fail(ErrorCode::kInput, "a BLAST database is several files, which no pipe delivers",
                "standard input", "give its name, without the ending of its files");
  const Kind& kind = kind_of(alphabet);
  std::vector<std::string> volumes;
  HMMJIT_TRY(find_volumes(kind, path, 0, volumes));
  // Check all volumes now: a fault must appear before the search, not hours into it.
  for (std::size_t i = 1; i < volumes.size(); ++i) {
    const auto opened = Volume::open(kind, volumes[i]);
    if (!opened) return std::unexpected(opened.error());
  }
  HMMJIT_ASSIGN(Volume first, Volume::open(kind, volumes.front()));
  return std::make_unique<BlastSource>(kind, path, std::move(volumes), std::move(first));
}

Result<std::unique_ptr<ByteSource>> open_blast_volume(std::string name,
                                                      const BlastVolumeBytes& bytes,
                                                      const Alphabet& alphabet) {
  const Kind& kind = kind_of(alphabet);
  HMMJIT_ASSIGN(Volume volume, Volume::of_bytes(kind, name, bytes));
  std::vector<std::string> volumes{name};
  return std::make_unique<BlastSource>(kind, std::move(name), std::move(volumes),
                                       std::move(volume));
}

namespace sequence_parsing {

std::unique_ptr<Parser> make_blast_parser(BufferedInput& input, const Alphabet& alphabet) {
  return std::make_unique<BlastParser>(input, alphabet);
}

}  // namespace sequence_parsing

}  // namespace hmmjit
