#include "io/blast_database.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "core/read_only_file.hpp"
#include "io/sequence_parsing.hpp"

namespace hmmjit {

using namespace sequence_parsing;

namespace {

// ---- definition lines

struct RecordText {
  std::string name, accession, description;
};

// Walks BER elements: a tag byte and a length, which may be indefinite (two zero bytes then end the
// element). After an error, `failed` is true and no element is found.
class BerReader {
 public:
  explicit BerReader(std::string_view data) : data_(data) {}

  bool failed() const { return failed_; }

  // True if the current element has another part.
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

  // The bytes of an element without parts, if it has this tag.
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

  // Skips one element with all its parts.
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

  // Takes tag and length.
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

std::optional<std::int64_t> integer_member(BerReader& ber, unsigned n) {
  if (!ber.enter(member(n))) return std::nullopt;
  const auto bytes = ber.primitive(kInteger);
  ber.leave();
  if (!bytes || bytes->empty() || bytes->size() > 8) return std::nullopt;
  std::uint64_t value = (static_cast<std::uint8_t>(bytes->front()) & 0x80) != 0 ? ~0ull : 0;
  for (const char c : *bytes) value = value << 8 | static_cast<std::uint8_t>(c);
  return static_cast<std::int64_t>(value);
}

// Chooses a name as hmmsearch does, among the identifiers of all definition lines of a record (nr
// has one line for each of several identical sequences): the first with name and accession; else
// the first with either, which becomes the name; else the first local, PDB or other number or
// string; else the first word of the definition line. Accessions have no version. Unlike in
// hmmsearch, PDB chains are part of the name. The description is that of the last definition line.
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
        if (const auto bytes = ber.primitive(kInteger); bytes && bytes->size() == 1)
          keep(std::optional<std::int64_t>(static_cast<signed char>(bytes->front())));
        break;
      case 3:  // giim: Giimport-id
      case 8:  // patent: Patent-seq-id
        if (ber.enter(kSequence)) {
          keep(integer_member(ber, 0));
          ber.leave();
        }
        break;
      case 10:  // general: Dbtag; hmmsearch has no name then
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
      case 14:  // pdb: PDB-seq-id; chains have had names since letters ran out
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
      case 2:   // gibbmt
      case 11:  // gi
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

// nullopt: damaged.
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

std::uint32_t big_endian(const char* bytes) {
  std::uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return std::endian::native == std::endian::little ? __builtin_bswap32(value) : value;
}

// The three files of a volume, mapped or in memory.
class Volume {
 public:
  static Result<Volume> open(const std::string& base) {
    Volume out;
    out.name_ = base;
    for (std::size_t i = 0; i < out.files_.size(); ++i) {
      constexpr std::array kSuffixes{".pin", ".phr", ".psq"};
      HMMJIT_ASSIGN(out.files_[i], MappedFile::open(base + kSuffixes[i]));
    }
    const auto view = [&](std::size_t i) {
      return std::string_view(out.files_[i].bytes().data(), out.files_[i].bytes().size());
    };
    out.bytes_ = {view(0), view(1), view(2)};
    HMMJIT_TRY(out.read_index());
    return out;
  }

  static Result<Volume> of_bytes(std::string name, const BlastVolumeBytes& bytes) {
    Volume out;
    out.name_ = std::move(name);
    out.bytes_ = bytes;
    HMMJIT_TRY(out.read_index());
    return out;
  }

  std::uint32_t size() const { return records_; }

  // Appends record `i` to `stream` (see RecordHead).
  Status append(std::uint32_t i, std::vector<char>& stream) const;

 private:
  std::unexpected<Error> damaged(std::string_view what, const char* suffix) const {
    return fail(ErrorCode::kInput, fmt::format("the BLAST database is damaged: {}", what),
                name_ + suffix, kAgain);
  }

  Status read_index();

  // Bytes [from, to) of record i in a file whose table of offsets is at `table`.
  std::optional<std::string_view> record(std::uint32_t i, std::size_t table,
                                         std::string_view file) const {
    const std::uint32_t from = big_endian(bytes_.index.data() + table + std::size_t{i} * 4);
    const std::uint32_t to = big_endian(bytes_.index.data() + table + std::size_t{i} * 4 + 4);
    if (from > to || to > file.size()) return std::nullopt;
    return file.substr(from, to - from);
  }

  std::string name_;
  std::array<MappedFile, 3> files_;
  BlastVolumeBytes bytes_;
  std::uint32_t records_ = 0;
  std::size_t header_table_ = 0, sequence_table_ = 0;  // in the index
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
    return fail(ErrorCode::kInput, "no BLAST database of version 4 or 5", name_ + ".pin",
                "make it with makeblastdb, or convert it: blastdbcmd -db NAME -entry all");
  }
  const std::uint32_t type = number();
  if (whole && type != 1) return damaged("its index is not one of proteins", ".pin");
  if (version == 5) pass(4);         // number of the volume
  pass(number());                    // title
  if (version == 5) pass(number());  // name of the accession index
  pass(number());                    // date
  records_ = number();
  pass(8 + 4);  // total residues (little-endian), residues of the longest sequence
  if (!whole) return damaged("its index ends early", ".pin");
  const std::size_t table = (std::size_t{records_} + 1) * 4;
  if (index.size() - at < 2 * table) return damaged("its index ends early", ".pin");
  header_table_ = at;
  sequence_table_ = at + table;
  return {};
}

// Precedes the text and the residues of a record in the stream; native byte order.
struct RecordHead {
  std::uint32_t name, accession, description, residues;  // bytes
};

constexpr std::string_view kMagic("HMMJITbl", 8);

Status Volume::append(std::uint32_t i, std::vector<char>& stream) const {
  const auto lines = record(i, header_table_, bytes_.headers);
  if (!lines) return damaged(fmt::format("record {} lies outside the file", i), ".phr");
  const auto text = read_definition_lines(*lines);
  if (!text) {
    return damaged(fmt::format("the definition line of record {} cannot be read", i), ".phr");
  }
  auto residues = record(i, sequence_table_, bytes_.sequences);
  // A zero byte follows every sequence.
  if (!residues || residues->empty() || residues->back() != '\0')
    return damaged(fmt::format("record {} lies outside the file", i), ".psq");
  residues->remove_suffix(1);
  const auto size = [](std::string_view s) { return static_cast<std::uint32_t>(s.size()); };
  const RecordHead head{size(text->name), size(text->accession), size(text->description),
                        size(*residues)};
  const auto put = [&](const void* data, std::size_t bytes) {
    const char* const begin = static_cast<const char*>(data);
    stream.insert(stream.end(), begin, begin + bytes);
  };
  put(&head, sizeof head);
  for (const std::string* part : {&text->name, &text->accession, &text->description})
    put(part->data(), part->size());
  put(residues->data(), residues->size());
  return {};
}

// ---- aliases

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Words of a line; a word in double quotes may contain blanks.
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

// Alias entries that do not restrict the databases.
constexpr std::array<std::string_view, 8> kDescriptive{
    "TITLE",      "NSEQ",         "LENGTH",   "MAXLEN",
    "STATS_NSEQ", "STATS_TOTLEN", "MASKLIST", "ALIAS_FILE_VERSION"};

// Adds the volumes of the database to `volumes`.
Status find_volumes(const std::string& path, int depth, std::vector<std::string>& volumes) {
  if (exists(path + ".pin")) {
    volumes.push_back(path);
    return {};
  }
  const std::string alias = path + ".pal";
  if (!exists(alias)) {
    if (exists(path + ".nin") || exists(path + ".nal")) {
      return fail(ErrorCode::kInput, "a BLAST database of nucleotides", path,
                  "targets are proteins; for others make FASTA: blastdbcmd -db NAME -entry all");
    }
    return fail(ErrorCode::kInput, "no BLAST database of proteins: neither .pin nor .pal is there",
                path, "name it without the ending of its files");
  }
  if (depth > 8) return fail(ErrorCode::kInput, "aliases name one another", alias, kAgain);
  HMMJIT_ASSIGN(const std::string text, read_whole_file(alias));
  std::vector<std::string> names;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::vector<std::string> words = words_of(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
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
    HMMJIT_TRY(find_volumes(name.starts_with('/') ? name : folder + name, depth + 1, volumes));
  }
  return {};
}

// ---- the stream

class BlastSource final : public ByteSource {
 public:
  // `first`: volumes[0], opened.
  BlastSource(std::string name, std::vector<std::string> volumes, Volume first)
      : volumes_(std::move(volumes)), volume_(std::move(first)) {
    name_ = std::move(name);
  }

  Result<std::span<const char>> next() override {
    stream_.clear();
    if (!begun_) stream_.assign(kMagic.begin(), kMagic.end());
    begun_ = true;
    while (stream_.size() < kChunk) {
      if (record_ < volume_.size()) {
        HMMJIT_TRY(volume_.append(record_, stream_));
        ++record_;
      } else if (at_ + 1 < volumes_.size()) {
        HMMJIT_TRY(go_to(at_ + 1));
      } else {
        break;
      }
    }
    return std::span<const char>(stream_);
  }

  Status rewind() override {
    begun_ = false;
    if (at_ != 0) return go_to(0);
    record_ = 0;
    return {};
  }
  bool rewindable() const override { return true; }

 private:
  Status go_to(std::size_t volume) {
    HMMJIT_ASSIGN(volume_, Volume::open(volumes_[volume]));
    at_ = volume;
    record_ = 0;
    return {};
  }

  static constexpr std::size_t kChunk = std::size_t{1} << 20;

  std::vector<std::string> volumes_;
  Volume volume_;
  std::size_t at_ = 0;  // of volume_ in volumes_
  std::uint32_t record_ = 0;
  bool begun_ = false;
  std::vector<char> stream_;
};

class BlastParser final : public Parser {
 public:
  BlastParser(BufferedInput& input, const Alphabet& alphabet) : input_(input), alphabet_(alphabet) {
    constexpr std::string_view kLetters = "-ABCDEFGHIKLMNPQRSTVWXYZU*OJ";  // NCBIstdaa
    codes_.fill(kInvalidCode);
    for (std::size_t i = 1; i < kLetters.size(); ++i)
      codes_[i] = alphabet.digit[static_cast<unsigned char>(kLetters[i])];
  }

  void reset() override {
    begun_ = false;
    records_ = 0;
  }

  Status read(TargetBlock& block, std::uint64_t residues, std::uint64_t targets) override {
    if (!begun_) {
      if (alphabet_.type != AlphabetType::kAmino)
        return fail(ErrorCode::kInput, "the BLAST database holds proteins", input_.name(),
                    "search models of proteins");
      std::array<char, kMagic.size()> magic;
      HMMJIT_ASSIGN(const bool some, input_.read(magic.data(), magic.size()));
      if (!some || std::string_view(magic.data(), magic.size()) != kMagic)
        return fail(ErrorCode::kInput, "a BLAST database is read from its files only",
                    input_.name(), "give its name, without the ending of its files");
      begun_ = true;
    }
    while (block.residue_count() < residues && block.size() < targets) {
      RecordHead head;
      HMMJIT_ASSIGN(const bool some, input_.read(&head, sizeof head));
      if (!some) return {};
      Status status = read_record(head, block);
      if (!status) return status;
      ++records_;
    }
    return {};
  }

 private:
  std::string where() const { return fmt::format("{}, record {}", input_.name(), records_); }
  std::unexpected<Error> ends_early() const {
    return fail(ErrorCode::kInput, "the data end inside a record", where(), kAgain);
  }

  // Passes the next `bytes` bytes to `use` in pieces, so that a wrong length allocates nothing.
  template <typename Use>
  Status pieces(std::uint32_t bytes, Use use) {
    while (bytes > 0) {
      const std::uint32_t piece = std::min<std::uint32_t>(bytes, kPiece);
      HMMJIT_ASSIGN(const bool whole, input_.read(piece_.data(), piece));
      if (!whole) return ends_early();
      HMMJIT_TRY(use(std::string_view(piece_.data(), piece)));
      bytes -= piece;
    }
    return {};
  }

  Status read_record(const RecordHead& head, TargetBlock& block) {
    std::array<std::string, 3> texts;
    const std::array sizes{head.name, head.accession, head.description};
    for (std::size_t i = 0; i < texts.size(); ++i) {
      texts[i].clear();
      HMMJIT_TRY(pieces(sizes[i], [&](std::string_view piece) -> Status {
        texts[i].append(piece);
        return {};
      }));
      if (has_nul(texts[i])) return nul_byte(where(), texts[0]);
    }
    if (texts[0].empty())
      return fail(ErrorCode::kInput, "a record without a name", where(),
                  "give every record a name");
    if (head.residues > kLongestTarget) return too_long(where(), texts[0]);
    block.begin_target(texts[0], texts[1], texts[2]);
    std::array<Residue, kPiece> digital;
    Status status = pieces(head.residues, [&](std::string_view piece) -> Status {
      for (std::size_t i = 0; i < piece.size(); ++i) {
        digital[i] = codes_[static_cast<unsigned char>(piece[i])];
        if (digital[i] != kInvalidCode) continue;
        if (piece[i] == '\0') return illegal_character(where(), texts[0], '-', alphabet_);
        return fail(ErrorCode::kInput, "the BLAST database is damaged: no residue has this code",
                    where(), kAgain);
      }
      block.append({digital.data(), piece.size()});
      return {};
    });
    if (!status) {
      block.abandon_target();
      return status;
    }
    block.end_target();
    return {};
  }

  static constexpr std::size_t kPiece = 16384;

  BufferedInput& input_;
  const Alphabet& alphabet_;
  std::array<Residue, 256> codes_;
  std::array<char, kPiece> piece_;
  bool begun_ = false;
  std::uint64_t records_ = 0;
};

}  // namespace

bool is_blast_database(const std::string& path) {
  return path != "-" && (exists(path + ".pin") || exists(path + ".pal"));
}

Result<std::unique_ptr<ByteSource>> open_blast_database(const std::string& path) {
  if (path == "-")
    return fail(ErrorCode::kInput, "a BLAST database is several files, which no pipe delivers",
                "standard input", "give its name, without the ending of its files");
  std::vector<std::string> volumes;
  HMMJIT_TRY(find_volumes(path, 0, volumes));
  // Reports a fault in any volume before the search, not hours into it.
  for (std::size_t i = 1; i < volumes.size(); ++i) {
    const auto opened = Volume::open(volumes[i]);
    if (!opened) return std::unexpected(opened.error());
  }
  HMMJIT_ASSIGN(Volume first, Volume::open(volumes.front()));
  return std::make_unique<BlastSource>(path, std::move(volumes), std::move(first));
}

Result<std::unique_ptr<ByteSource>> open_blast_volume(std::string name,
                                                      const BlastVolumeBytes& bytes) {
  HMMJIT_ASSIGN(Volume volume, Volume::of_bytes(name, bytes));
  std::vector<std::string> volumes{name};
  return std::make_unique<BlastSource>(std::move(name), std::move(volumes), std::move(volume));
}

namespace sequence_parsing {

std::unique_ptr<Parser> make_blast_parser(BufferedInput& input, const Alphabet& alphabet) {
  return std::make_unique<BlastParser>(input, alphabet);
}

}  // namespace sequence_parsing

}  // namespace hmmjit
