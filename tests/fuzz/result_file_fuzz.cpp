// JSON lines and tables given to `hmmjit report` are refused or give a page that contains no text
// of the file unescaped.
#include "hmmjit/result_file.hpp"
#include "report/page_results.hpp"
#include "tests/fuzz/entry.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hmmjit;
  auto source = open_memory_source("fuzz", {reinterpret_cast<const char*>(data), size}, 4096);
  if (!source) return 0;
  auto page = tools::read_results(std::move(*source));
  if (!page) {
    require(!page.error().message.empty());
    return 0;
  }
  const std::string empty = make_html_page({});
  const std::string html = make_html_page(page->front());
  const auto scripts = [](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("<script", at)) != text.npos; ++at) ++count;
    return count;
  };
  require(scripts(html) == scripts(empty));
  keep_best(page->front(), 1);
  require(make_html_page(page->front()).size() >= empty.size() / 2);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {
      "{\"record\":\"run\",\"models\":0,\"targets\":0,\"residues\":0,\"targets_reported\":0,"
      "\"targets_included\":0,\"domains_reported\":0,\"domains_included\":0,"
      "\"program\":\"<script>alert(1)</script>\"}\n",
      "target\tmodel\n", "{\"record\":\"model\"}\n"};
}

std::vector<std::string> fuzz_folders() { return {}; }
