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

struct Outcome {
  int records;        // models or targets delivered
  const char* error;  // substring of the message; nullptr: accepted
  // The reason if the outcome differs from hmmsearch's; docs/differences.md names it too.
  const char* deviation = nullptr;
};

constexpr const char* kTruncated = "hmmsearch takes a truncated model as the end of the file";
constexpr const char* kByContent = "compression is recognised by content";

const std::map<std::string, Outcome> kProfiles = {
    {"hmm_bad/alph_dna_but_20_columns.hmm", {1, nullptr, "refused only by the target alphabet"}},
    {"hmm_bad/alph_unknown.hmm", {0, ":6: model RRM_1: alphabet \"klingon\" is unknown"}},
    {"hmm_bad/binary_garbage.hmm", {0, "is not recognised"}},
    {"hmm_bad/duplicate_model.hmm", {2, nullptr}},
    {"hmm_bad/emission_all_star.hmm", {1, nullptr}},
    {"hmm_bad/emission_extra_column.hmm", {1, nullptr}},
    {"hmm_bad/emission_missing_column.hmm", {0, ":32: model RRM_1: node 3: an annotation column"}},
    {"hmm_bad/emission_negative.hmm", {1, nullptr}},
    {"hmm_bad/emission_text.hmm", {1, nullptr}},
    {"hmm_bad/empty.hmm", {0, "is empty"}},
    {"hmm_bad/ga_one_value.hmm", {0, ":12: model RRM_1: GA needs two numbers"}},
    {"hmm_bad/ga_text.hmm", {1, nullptr}},
    {"hmm_bad/good_then_garbage.hmm", {1, ":240: format tag \"<html><body>404</body></\""}},
    {"hmm_bad/good_then_truncated.hmm", {1, ":331: model RRM_1: node 23: 1 match emissions"}},
    {"hmm_bad/gz_truncated.hmm.gz", {0, "gzip data ends early"}},
    {"hmm_bad/gz_without_suffix.hmm", {1, nullptr, kByContent}},
    {"hmm_bad/header_only.hmm", {0, "the file ends inside model RRM_1", kTruncated}},
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
    {"hmm_bad/no_stats.hmm", {1, nullptr}},
    {"hmm_bad/no_terminator.hmm", {0, "the file ends inside model RRM_1", kTruncated}},
    {"hmm_bad/node_line_missing.hmm", {0, ":33: model RRM_1: node 3: 7 insert emissions"}},
    {"hmm_bad/node_number_wrong.hmm", {0, "expected node 3 of 71, found \"7\""}},
    {"hmm_bad/not_really_gz.hmm.gz", {0, "the name ends in .gz but the data is not gzip"}},
    {"hmm_bad/null_bytes.hmm", {1, nullptr}},
    {"hmm_bad/stats_lambda_zero.hmm", {1, nullptr}},
    {"hmm_bad/stats_nan.hmm", {1, nullptr}},
    {"hmm_bad/stats_partial.hmm", {0, "some STATS lines are missing"}},
    {"hmm_bad/transition_short.hmm", {0, ":34: model RRM_1: node 3: 5 transitions, 7 needed"}},
    {"hmm_bad/truncated_at_node.hmm",
     {0, "the file ends inside model RRM_1, at node 36 of 71", kTruncated}},
    {"hmm_bad/truncated_midline.hmm", {0, ":128: model RRM_1: node 35: 14 match emissions"}},
    {"hmm_bad/version_g.hmm", {0, "format tag \"HMMER3/g\" is not recognised"}},
    {"hmm_binary/RREFam.h3m", {10, nullptr}},
    {"hmm_binary/Thioesterase.h3m", {1, nullptr}},
    {"hmm_crlf/PF13419.hmm", {1, nullptr}},
    {"hmm_crlf/TS_Pyr4.hmm", {1, nullptr}},
    {"hmm_h2/RREFam.hmm2", {10, nullptr}},
    {"hmm_h2/Thioesterase.hmm2", {1, nullptr}},
    {"hmm_h2/example.hmm2", {2, nullptr}},
    {"hmm_nucleotide/2OG-FeII_Oxy_3-nt.hmm", {1, nullptr, "refused only by the target alphabet"}},
    {"hmm_nucleotide/3box.hmm", {1, nullptr, "refused only by the target alphabet"}},
    {"hmm_nucleotide/MADE1.hmm", {1, nullptr, "refused only by the target alphabet"}},
    {"hmm_nucleotide/PSE.hmm", {1, nullptr, "refused only by the target alphabet"}},
    {"hmm_nucleotide/RF00001.hmm", {1, nullptr, "refused only by the target alphabet"}},
    {"hmm_nucleotide/ecori.hmm", {1, nullptr, "refused only by the target alphabet"}},
    {"hmm_odd/bom.hmm", {0, "begins with a UTF-8 byte order mark"}},
    {"hmm_odd/crlf.hmm", {1, nullptr}},
    {"hmm_odd/desc_long.hmm", {1, nullptr}},
    {"hmm_odd/ga_negative.hmm", {1, nullptr}},
    {"hmm_odd/ga_no_semicolon.hmm", {1, nullptr}},
    {"hmm_odd/ga_semicolon.hmm", {1, nullptr}},
    {"hmm_odd/ga_unreachable.hmm", {1, nullptr}},
    {"hmm_odd/leading_blank_lines.hmm", {1, nullptr}},
    {"hmm_odd/name_long.hmm", {1, nullptr}},
    {"hmm_odd/name_utf8.hmm", {1, nullptr}},
    {"hmm_odd/no_compo_no_map.hmm", {1, nullptr}},
    {"hmm_odd/no_final_newline.hmm", {1, nullptr}},
    {"hmm_odd/tabs.hmm", {1, nullptr}},
    {"hmm_odd/trailing_blanks.hmm", {1, nullptr}},
    {"hmm_odd/trailing_comment_lines.hmm", {1, nullptr}},
    {"hmm_odd/unknown_tag.hmm", {1, nullptr}},
    {"hmm_versions/example_3b.hmm", {2, nullptr}},
    {"hmm_versions/fn3_3a.hmm", {1, nullptr}},
    {"hmm_versions/fn3_3b.hmm", {1, nullptr}},
    {"hmm_versions/fn3_3c.hmm", {1, nullptr}},
    {"hmm_versions/fn3_3d.hmm", {1, nullptr}},
    {"hmm_versions/fn3_3e.hmm", {1, nullptr}},
    {"hmm_versions/fn3_3f.hmm", {1, nullptr}},
    {"hmm_versions/fn3_binary.hmm", {1, nullptr}},
    {"hmm_versions/fn3_h2.hmm", {1, nullptr}},
    {"hmm_versions/globins4_3a.hmm", {1, nullptr}},
    {"hmm_versions/globins4_3b.hmm", {1, nullptr}},
    {"hmm_versions/globins4_3c.hmm", {1, nullptr}},
    {"hmm_versions/globins4_3d.hmm", {1, nullptr}},
    {"hmm_versions/globins4_3e.hmm", {1, nullptr}},
    {"hmm_versions/globins4_3f.hmm", {1, nullptr}},
    {"hmm_versions/mixed_versions.hmm", {1, "follows models of another format version"}},
    {"hmm_wrong_kind/fn3.sto", {0, "build a profile from the alignment with hmmbuild"}},
    {"hmm_wrong_kind/minifam", {0, "build a profile from the alignment with hmmbuild"}},
};

const std::map<std::string, Outcome> kSequences = {
    {"easel_formats/embl", {1, nullptr}},
    {"easel_formats/fasta", {2, nullptr}},
    {"easel_formats/fasta.2", {2, nullptr}},
    {"easel_formats/fasta.bad.1", {0, ":2: illegal character 1"}},
    {"easel_formats/fasta.bad.2", {1, nullptr}},
    {"easel_formats/fasta.bad.3", {1, nullptr}},
    {"easel_formats/fasta.odd.1", {2, nullptr}},
    {"easel_formats/genbank", {2, nullptr}},
    {"easel_formats/genbank.2", {2, nullptr}},
    {"easel_formats/genbank.bad.1", {0, ":30: illegal character % in amino sequence AAURRA"}},
    {"easel_formats/stockholm.1", {2, nullptr}},
    {"easel_formats/uniprot", {1, nullptr}},
    {"seq_bad/bad_in_middle.fasta", {1, ":6: illegal character ?"}},
    {"seq_bad/binary_garbage.fasta", {0, "is in no known format"}},
    {"seq_bad/digits_in_sequence.fasta", {0, ":2: illegal character 1"}},
    {"seq_bad/empty.fasta", {0, "is empty; check whether what made it has failed"}},
    {"seq_bad/empty_name.fasta", {0, ":1: no name after the >"}},
    {"seq_bad/good_then_bad.fasta", {8, ":34: illegal character 1"}},
    {"seq_bad/gz_truncated.fasta.gz",
     {0, "gzip data ends early", "hmmsearch ignores the exit status of gzip"}},
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
    {"seq_bad_real/biopython_dups.fasta", {5, nullptr}},
    {"seq_bad_real/biopython_f001", {1, nullptr}},
    {"seq_bad_real/biopython_flowers.pro.gz", {3, nullptr}},
    {"seq_bad_real/test_base_with_errors.fa", {1, ":28: no name after the >"}},
    {"seq_formats/20aa-alitest.afa", {0, ":2: illegal character -"}},
    {"seq_formats/20aa-alitest.sto", {4, nullptr}},
    {"seq_formats/PAX8_HUMAN", {1, nullptr}},
    {"seq_formats/ecori.fa", {1, nullptr}},
    {"seq_formats/globins4.sto", {4, nullptr}},
    {"seq_odd/all_X.fasta", {3, nullptr}},
    {"seq_odd/blank_lines.fasta", {8, nullptr}},
    {"seq_odd/bom.fasta", {0, "the file holds no sequences"}},
    {"seq_odd/cr_only.fasta", {2, nullptr}},
    {"seq_odd/crlf.fasta", {8, nullptr}},
    {"seq_odd/ctrl_a_header.fasta", {1, nullptr}},
    {"seq_odd/degenerate_BJZXUO.fasta", {8, nullptr}},
    {"seq_odd/duplicate_names.fasta", {8, nullptr}},
    {"seq_odd/duplicate_records.fasta", {5, nullptr}},
    {"seq_odd/empty_sequences.fasta", {5, nullptr}},
    {"seq_odd/gaps_dash_dot.fasta", {0, ":2: illegal character -"}},
    {"seq_odd/greater_in_description.fasta", {1, nullptr}},
    {"seq_odd/gz_input.fasta.gz", {8, nullptr}},
    {"seq_odd/gz_two_members.fasta.gz", {8, nullptr}},
    {"seq_odd/internal_star.fasta", {8, nullptr}},
    {"seq_odd/leading_blank_lines.fasta", {8, nullptr}},
    {"seq_odd/length_10000.fasta", {1, nullptr}},
    {"seq_odd/length_100000.fasta", {1, nullptr}},
    {"seq_odd/length_100001.fasta", {1, nullptr, "hmmsearch aborts above 100,000 residues"}},
    {"seq_odd/length_34350.fasta", {1, nullptr}},
    {"seq_odd/length_99999.fasta", {1, nullptr}},
    {"seq_odd/long_description.fasta", {1, nullptr}},
    {"seq_odd/long_name.fasta", {1, nullptr}},
    {"seq_odd/low_complexity.fasta", {7, nullptr}},
    {"seq_odd/lowercase.fasta", {8, nullptr}},
    {"seq_odd/mixed_case.fasta", {8, nullptr}},
    {"seq_odd/name_after_blank.fasta", {1, nullptr}},
    {"seq_odd/no_final_newline.fasta", {8, nullptr}},
    {"seq_odd/one_line_sequences.fasta", {8, nullptr}},
    {"seq_odd/one_residue.fasta", {3, nullptr}},
    {"seq_odd/only_star.fasta", {2, nullptr}},
    {"seq_odd/plain.fasta", {8, nullptr}},
    {"seq_odd/spaces_in_sequence.fasta", {8, nullptr}},
    {"seq_odd/tab_after_name.fasta", {1, nullptr}},
    {"seq_odd/tandem_domains.fasta", {2, nullptr}},
    {"seq_odd/terminal_star.fasta", {8, nullptr}},
    {"seq_odd/trailing_blanks.fasta", {8, nullptr}},
    {"seq_odd/two_to_five.fasta", {4, nullptr}},
    {"seq_odd/utf8_description.fasta", {1, nullptr}},
    {"seq_odd/width_1.fasta", {2, nullptr}},
    {"seq_odd/x_runs.fasta", {8, nullptr}},
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

void check_outcome(const Outcome& expected, std::size_t records, const std::string& error,
                   ErrorCode code) {
  EXPECT_EQ(records, static_cast<std::size_t>(expected.records)) << error;
  if (expected.error == nullptr) {
    EXPECT_EQ(error, "");
  } else {
    EXPECT_THAT(error, ::testing::HasSubstr(expected.error));
    EXPECT_EQ(code, ErrorCode::kInput);
    EXPECT_THAT(error, ::testing::Not(::testing::HasSubstr("\n"))) << "more than one line";
    EXPECT_THAT(error, ::testing::HasSubstr("; ")) << "no remedy";
  }
}

TEST(EdgeFiles, ProfilesHaveTheirDocumentedOutcome) {
  HMMJIT_SHARED_OR_SKIP(shared);
  for (const auto& [file, expected] : kProfiles) {
    SCOPED_TRACE(file);
    ModelsResult got = read_models(HmmReader::open(shared / "data/edge" / file));
    check_outcome(expected, got.models.size(), got.error, got.code);
    for (const Hmm& hmm : got.models) {
      EXPECT_EQ(hmm.consensus.size(), static_cast<std::size_t>(hmm.M));
      EXPECT_EQ(hmm.needs_calibration, file.starts_with("hmm_h2/") || file.ends_with("_h2.hmm"));
    }
  }
}

TEST(EdgeFiles, SequencesHaveTheirDocumentedOutcome) {
  HMMJIT_SHARED_OR_SKIP(shared);
  for (const auto& [file, expected] : kSequences) {
    SCOPED_TRACE(file);
    ReadResult got =
        read_targets(SequenceReader::open(shared / "data/edge" / file, {amino_alphabet()}));
    check_outcome(expected, got.targets.size(), got.error, got.code);
  }
}

// The tables above contain every file and name every difference from hmmsearch.
TEST(EdgeFiles, OutcomesAreThoseOfHmmsearchExceptNamedDeviations) {
  HMMJIT_SHARED_OR_SKIP(shared);
  auto seen = hmmsearch_behaviour(shared);
  ASSERT_EQ(seen.size(), kProfiles.size() + kSequences.size());
  for (const Seen& row : seen) {
    SCOPED_TRACE(row.file);
    const auto& table = row.role == "profile" ? kProfiles : kSequences;
    auto found = table.find(row.file);
    ASSERT_NE(found, table.end());
    bool same = (row.result == "accepted") == (found->second.error == nullptr);
    EXPECT_EQ(same, found->second.deviation == nullptr)
        << "hmmsearch: " << row.result << ", deviation: "
        << (found->second.deviation != nullptr ? found->second.deviation : "none named");
  }
}

}  // namespace
}  // namespace hmmjit::io_test
