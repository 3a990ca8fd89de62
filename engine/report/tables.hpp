// hmmsearch's tables: --tblout, --domtblout, --pfamtblout (HMMER User's Guide).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "search/search.hpp"

namespace hmmjit {

/// The columns of names at the beginning of all tables of hits.
struct NameColumns {
  std::string_view target, target_accession, query, query_accession;
};
struct NameWidths {
  std::size_t target, target_accession, query, query_accession;
};
NameWidths name_widths(const ModelInfo& query, std::size_t longest_name,
                       std::size_t longest_accession);
void append_names(std::string& out, const NameColumns& names, const NameWidths& widths,
                  std::string_view between = " ");
/// The titles of these columns and the dashes below them, as comments.
void append_name_titles(std::string& out, const NameWidths& widths, std::string_view between = " ");
void append_name_rules(std::string& out, const NameWidths& widths, std::string_view between = " ");
/// The names of a query and of a hit.
NameColumns name_columns(const ModelInfo& query, std::string_view target,
                         std::string_view accession);

/// Header lines. The first model's results determine the column widths.
void append_target_table_header(std::string& out, const ModelInfo& model, const HitList& hits);
/// One row per reported target. `marked`, here and below: rows begin with a mark for KeptRows.
void append_target_table(std::string& out, const HitLot& lot, bool marked = false);

void append_domain_table_header(std::string& out, const ModelInfo& model, const HitList& hits);
/// One row per reported domain.
void append_domain_table(std::string& out, const HitLot& lot, bool marked = false);

/// The two halves of --pfamtblout, with headers for every model.
void append_pfam_target_titles(std::string& out, const HitList& hits);
void append_pfam_targets(std::string& out, const HitLot& lot, bool marked = false);
void append_pfam_domain_titles(std::string& out, const HitList& hits);
/// A line of the second half with its sort key; lines with equal keys keep hit order.
struct PfamDomain {
  double key = 0;
  int iali = 0;
  bool forward = true;
  std::string name, line;
};
bool stands_before(const PfamDomain& a, const PfamDomain& b);
/// The lines of the reported domains.
std::vector<PfamDomain> pfam_domains(const HitLot& lot);

/// The run, as described in the comments at the end of a table.
struct RunDescription {
  std::string program, version;  ///< "hmmjit search", "0.1.0"
  std::string query_file, target_file;
  std::string option_settings;  ///< program, options and files, each followed by a blank
  std::string folder, date;
  bool scan = false;         ///< hmmscan's view: targets are the queries
  bool by_sequence = false;  ///< RecordOptions::by_sequence
  /// "hmmsearch": the program that table trailers name; they add that hmmjit computed the table.
  std::string hmmer_program = {};
};
void append_table_trailer(std::string& out, const RunDescription& run);

}  // namespace hmmjit
