// A finished search as one self-contained HTML page: overview, models, domain architectures, a
// table of domains, and alignments.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hmmjit {

/// The content of the page, filled in by a reader of result files. The page omits what a file
/// lacks.
struct PageDomain {
  int number = 0;
  bool included = false;
  double c_evalue = 0, i_evalue = 0, score = 0, accuracy = 0;
  std::optional<bool> kept;  ///< whether it remains after overlaps are resolved
  int hmm_from = 0, hmm_to = 0, ali_from = 0, ali_to = 0, env_from = 0, env_to = 0;
  std::string model, match, target, pp;  ///< alignment; empty: none
};
struct PageHit {  ///< a target found by a model
  std::size_t model = 0;
  bool included = false;
  double evalue = 0, score = 0, bias = 0;
  std::vector<PageDomain> domains;
};
struct PageTarget {
  std::string name, accession, description;
  int length = 0;
  std::size_t result = 0;  ///< in Page::results
  std::vector<PageHit> hits;
  double best_evalue() const;
};
struct PageModel {
  std::string name, accession, description;
  int length = 0;
  std::uint64_t reported = 0, included = 0;
  /// Targets in all, and those that passed MSV, bias, Viterbi and Forward.
  std::optional<std::uint64_t> targets, msv, bias, viterbi, forward;
};
struct Page {
  std::string title;
  std::vector<std::pair<std::string, std::string>> run;  ///< shown in this order
  std::vector<std::string> results;                      ///< their names, if there are several
  std::vector<PageModel> models;
  std::map<std::uint64_t, PageTarget> targets;  ///< by index in the target file and result
  std::size_t left_out = 0;                     ///< targets not shown; the page says so
};

/// "pfam.hmm x ecoli.faa": the title of a page for these files.
std::string page_title(const std::string& models, const std::string& targets);
/// Adds another result and appends its name to `page.results`. Merges models with equal name,
/// accession and length.
void add_result(Page& page, Page other, const std::string& name);

/// The page, in UTF-8, self-contained. Targets are sorted by their best E-value. Text from files is
/// compressed or escaped; a script draws the visible part (engine/report/page). Data are JSON,
/// compressed with gzip, in base64: less than 150 bytes per domain without alignments. Throws
/// std::bad_alloc.
std::string make_html_page(const Page& page);
/// Writes the same bytes in pieces; the page is never in memory as a whole. `out` may throw.
void write_html_page(const Page& page, const std::function<void(std::string_view)>& out);

}  // namespace hmmjit
