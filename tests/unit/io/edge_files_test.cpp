// The documented outcome of every odd and malformed file of the reference data, compared with the
// recorded behaviour of hmmsearch 3.3.2.
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <sstream>

#include "tests/support/shared_data.hpp"
#include "tests/unit/io/io_support.hpp"

namespace hmmjit::io_test {
namespace {

struct Refusal {
  int records;        // models or targets before the error
  const char* error;  // substring of the message
};

// Refused files. tests/scenario/bad_input_test.py compares the results from all others with
// hmmsearch's.
const std::map<std::string, Refusal> kRefused = {
    {"hmm_bad/alph_unknown.hmm", {0, ":6: model RRM_1: alphabet \"klingon\" is unknown"}},
    {"hmm_bad/binary_garbage.hmm", {0, "is not recognised"}},
    {"hmm_bad/emission_missing_column.hmm", {0, ":32: model RRM_1: node 3: an annotation column"}},
    {"hmm_bad/empty.hmm", {0, "is empty"}},
    {"hmm_bad/ga_one_value.hmm", {0, ":12: model RRM_1: GA needs two numbers"}},
    {"hmm_bad/good_then_garbage.hmm", {1, ":240: format tag \"<html><body>404</body></\""}},
    {"hmm_bad/good_then_truncated.hmm", {1, ":331: model RRM_1: node 23: 1 match emissions"}},
    {"hmm_bad/gz_truncated.hmm.gz", {0, "gzip data ends early"}},
    {"hmm_bad/header_only.hmm", {0, "the file ends inside model RRM_1"}},
    {"hmm_bad/html_error_page.hmm", {0, "format tag \"<!DOCTYPE\" is not recognised"}},
    {"hmm_bad/leng_huge.hmm", {0, "expected node 72 of 2147483647, found \"//\""}},
    {"hmm_bad/leng_negative.hmm", {0, "LENG must be a positive number, not \"-12\""}},
    {"hmm_bad/leng_text.hmm", {0, "LENG must be a positive number, not \"abc\""}},
    {"hmm_bad/leng_too_big.hmm", {0, "expected node 72 of 76"}},
    {"hmm_bad/leng_too_small.hmm", {0, "expected // after node 68"}},
    {"hmm_bad/leng_zero.hmm", {0, "LENG must be a positive number, not \"0\""}},
    {"hmm_bad/magic_lowercase.hmm", {0, "format tag \"hmmer3/e\" is not recognised"}},
    {"hmm_bad/magic_wrong.hmm", {0, "format tag \"HMMER4/a\" is not recognised"}},
    {"hmm_bad/newline_only.hmm", {0, "is empty"}},
    {"hmm_bad/no_alph.hmm", {0, "GA stands before ALPH"}},
    {"hmm_bad/no_leng.hmm", {0, "the header has no LENG line"}},
    {"hmm_bad/no_name.hmm", {0, "the header has no NAME line"}},
    {"hmm_bad/no_terminator.hmm", {0, "the file ends inside model RRM_1"}},
    {"hmm_bad/node_line_missing.hmm", {0, ":33: model RRM_1: node 3: 7 insert emissions"}},
    {"hmm_bad/node_number_wrong.hmm", {0, "expected node 3 of 71, found \"7\""}},
    {"hmm_bad/not_really_gz.hmm.gz", {0, "the name ends in .gz but the data is not gzip"}},
    {"hmm_bad/stats_partial.hmm", {0, "some STATS lines are missing"}},
    {"hmm_bad/transition_short.hmm", {0, ":34: model RRM_1: node 3: 5 transitions, 7 needed"}},
    {"hmm_bad/truncated_at_node.hmm", {0, "the file ends inside model RRM_1, at node 36 of 71"}},
    {"hmm_bad/truncated_midline.hmm", {0, ":128: model RRM_1: node 35: 14 match emissions"}},
    {"hmm_bad/version_g.hmm", {0, "format tag \"HMMER3/g\" is not recognised"}},
    {"hmm_odd/bom.hmm", {0, "begins with a UTF-8 byte order mark"}},
    {"hmm_versions/mixed_versions.hmm", {1, "follows models of another format version"}},
    {"hmm_wrong_kind/fn3.sto", {0, "build a profile from the alignment with hmmbuild"}},
    {"hmm_wrong_kind/minifam", {0, "build a profile from the alignment with hmmbuild"}},
    {"easel_formats/fasta.bad.1", {0, ":2: illegal character 1"}},
    {"easel_formats/genbank.bad.1", {0, ":30: illegal character % in amino sequence AAURRA"}},
    {"seq_bad/bad_in_middle.fasta", {1, ":6: illegal character ?"}},
    {"seq_bad/binary_garbage.fasta", {0, "is in no known format"}},
    {"seq_bad/digits_in_sequence.fasta", {0, ":2: illegal character 1"}},
    {"seq_bad/empty.fasta", {0, "is empty; check whether what made it has failed"}},
    {"seq_bad/empty_name.fasta", {0, ":1: no name after the >"}},
    {"seq_bad/good_then_bad.fasta", {8, ":34: illegal character 1"}},
    {"seq_bad/gz_truncated.fasta.gz", {0, "gzip data ends early"}},
    {"seq_bad/html_error_page.fasta", {0, "the file holds no sequences"}},
    {"seq_bad/newlines_only.fasta", {0, "is empty"}},
    {"seq_bad/no_header.fasta", {0, "is in no known format"}},
    {"seq_bad/not_really_gz.fasta.gz", {0, "the name ends in .gz but the data is not gzip"}},
    {"seq_bad/nul_byte.fasta", {0, ":3: illegal character (byte 0x00)"}},
    {"seq_bad/only_gt.fasta", {0, ":1: no name after the >"}},
    {"seq_bad/punctuation_in_sequence.fasta", {0, ":2: illegal character #"}},
    {"seq_bad/semicolon_comments.fasta", {0, "is in no known format"}},
    {"seq_bad/utf8_in_sequence.fasta", {0, ":2: non-ASCII character (byte 0xc3)"}},
    {"seq_bad_real/JunkTest.fasta", {2, ":5: no name after the >"}},
    {"seq_bad_real/JunkTest_UTF8.fasta", {0, "the file holds no sequences"}},
    {"seq_bad_real/biopython_aster_blast.pro", {0, "is in no known format"}},
    {"seq_bad_real/biopython_aster_pearson.pro", {0, "is in no known format"}},
    {"seq_bad_real/test_base_with_errors.fa", {1, ":28: no name after the >"}},
    {"seq_formats/20aa-alitest.afa", {0, ":2: illegal character -"}},
    {"seq_odd/bom.fasta", {0, "the file holds no sequences"}},
    {"seq_odd/gaps_dash_dot.fasta", {0, ":2: illegal character -"}},
};

// Files whose outcome differs from hmmsearch's, and why; docs/differences.md names these
// differences.
constexpr const char* kTruncated = "hmmsearch takes a truncated model as the end of the file";
constexpr const char* kAlphabet = "refused only by the target alphabet";
const std::map<std::string, const char*> kDeviations = {
    {"hmm_bad/alph_dna_but_20_columns.hmm", kAlphabet},
    {"hmm_bad/gz_without_suffix.hmm", "compression is recognised by content"},
    {"hmm_bad/header_only.hmm", kTruncated},
    {"hmm_bad/no_terminator.hmm", kTruncated},
    {"hmm_bad/truncated_at_node.hmm", kTruncated},
    {"hmm_nucleotide/2OG-FeII_Oxy_3-nt.hmm", kAlphabet},
    {"hmm_nucleotide/3box.hmm", kAlphabet},
    {"hmm_nucleotide/MADE1.hmm", kAlphabet},
    {"hmm_nucleotide/PSE.hmm", kAlphabet},
    {"hmm_nucleotide/RF00001.hmm", kAlphabet},
    {"hmm_nucleotide/ecori.hmm", kAlphabet},
    {"seq_bad/gz_truncated.fasta.gz", "hmmsearch ignores the exit status of gzip"},
    {"seq_odd/length_100001.fasta", "hmmsearch aborts above 100,000 residues"},
};

struct Seen {
  std::string file, role, result;
};

// The recorded behaviour of hmmsearch.
std::vector<Seen> hmmsearch_behaviour(const std::filesystem::path& shared) {
  std::ifstream stream(shared / "data/expected/edge_behaviour.tsv");
  std::vector<Seen> rows;
  std::string line;
  while (std::getline(stream, line)) {
    if (!line.starts_with("edge/")) continue;
    std::istringstream fields(line);
    Seen row;
    std::getline(fields, row.file, '\t');
    std::getline(fields, row.role, '\t');
    std::getline(fields, row.result, '\t');
    row.file = row.file.substr(5);
    rows.push_back(row);
  }
  return rows;
}

void check_outcome(const std::string& file, std::size_t records, const std::string& error,
                   ErrorCode code) {
  const auto refusal = kRefused.find(file);
  if (refusal == kRefused.end()) {
    EXPECT_EQ(error, "");
    EXPECT_GT(records, 0u);
    return;
  }
  EXPECT_EQ(records, static_cast<std::size_t>(refusal->second.records)) << error;
  EXPECT_THAT(error, ::testing::HasSubstr(refusal->second.error));
  EXPECT_EQ(code, ErrorCode::kInput);
  EXPECT_THAT(error, ::testing::Not(::testing::HasSubstr("\n"))) << "more than one line";
  EXPECT_THAT(error, ::testing::HasSubstr("; ")) << "no remedy";
}

TEST(EdgeFiles, OutcomesAreThoseOfHmmsearchExceptNamedDeviations) {
  HMMJIT_SHARED_OR_SKIP(shared);
  std::size_t refused = 0;
  for (const Seen& row : hmmsearch_behaviour(shared)) {
    SCOPED_TRACE(row.file);
    const auto path = shared / "data/edge" / row.file;
    if (row.role == "profile") {
      const ModelsResult got = read_models(HmmReader::open(path));
      check_outcome(row.file, got.models.size(), got.error, got.code);
      for (const Hmm& hmm : got.models) {
        EXPECT_EQ(hmm.consensus.size(), static_cast<std::size_t>(hmm.M));
        EXPECT_EQ(hmm.needs_calibration,
                  row.file.starts_with("hmm_h2/") || row.file.ends_with("_h2.hmm"));
      }
    } else {
      const ReadResult got = read_targets(SequenceReader::open(path, {amino_alphabet()}));
      check_outcome(row.file, got.targets.size(), got.error, got.code);
    }
    const bool accepted = !kRefused.contains(row.file);
    refused += !accepted;
    EXPECT_EQ(accepted == (row.result == "accepted"), !kDeviations.contains(row.file))
        << "hmmsearch: " << row.result;
  }
  EXPECT_EQ(refused, kRefused.size());
}

}  // namespace
}  // namespace hmmjit::io_test
