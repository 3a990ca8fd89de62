#include "report/html_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <stdexcept>
#include <tuple>

#include "core/exact_text.hpp"
#include "io/text_output.hpp"
#include "report/page_parts.hpp"

namespace hmmjit {
namespace {

// Domains whose alignments are compressed together.
constexpr std::size_t kPartSize = 256;

// Key of a target: its index in the target file in the low bits, the number of its result above.
constexpr int kIndexBits = 40;
constexpr std::uint64_t kIndexOfResult = (std::uint64_t{1} << kIndexBits) - 1;

std::string_view file_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

using Sink = std::function<void(std::string_view)>;

// Compresses text with gzip and writes it in base64. Callers append to `text`, which is compressed
// in pieces.
class Packed {
 public:
  explicit Packed(const Sink& out) : out_(out) {}

  void pass_on() {
    if (text.size() >= kPiece) compress(false);
  }
  void end() {
    compress(true);
    append_base64(bytes_.size());
    out_(digits_);
  }

  std::string text;

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 16;

  void compress(bool end) {
    gzip_->compress(text, end, [this](std::string_view bytes) { bytes_ += bytes; });
    text.clear();
    append_base64(bytes_.size() / 3 * 3);
    if (end) return;
    out_(digits_);
    digits_.clear();
  }
  // Encodes and removes the first `count` bytes; a multiple of three except at the end.
  void append_base64(std::size_t count) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const auto byte = [&](std::size_t i) {
      return i < count ? static_cast<unsigned char>(bytes_[i]) : 0u;
    };
    for (std::size_t i = 0; i < count; i += 3) {
      const unsigned group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
      digits_ += kDigits[group >> 18];
      digits_ += kDigits[group >> 12 & 63];
      digits_ += i + 1 < count ? kDigits[group >> 6 & 63] : '=';
      digits_ += i + 2 < count ? kDigits[group & 63] : '=';
    }
    bytes_.erase(0, count);
  }

  const Sink& out_;
  std::unique_ptr<Compressor> gzip_ = make_gzip();
  std::string bytes_, digits_;  // compressed; in base64
};

void append_value(std::string& out, const std::string& value) { text::json_string(out, value); }
void append_value(std::string& out, bool value) { out += value ? '1' : '0'; }
void append_value(std::string& out, const std::optional<bool>& value) {
  out += !value ? "null" : *value ? "1" : "0";
}
void append_value(std::string& out, int value) { out += std::to_string(value); }
void append_value(std::string& out, std::uint64_t value) { out += std::to_string(value); }
// Nine digits identify any float; an E-value needs no more.
void append_value(std::string& out, double value) {
  if (value - value != 0) {
    out += "null";  // infinite
  } else {
    fmt::format_to(std::back_inserter(out), "{:.9g}", value);
  }
}

// {"name": [one value per item], ...}
class Columns {
 public:
  Columns(Packed& packed, std::string_view name) : packed_(packed), out_(packed.text) {
    fmt::format_to(std::back_inserter(out_), "\"{}\":{{", name);
  }

  // `value`: a function or member of the items, or of the objects they point to.
  template <typename Items, typename Value>
  void add(std::string_view name, const Items& items, Value value) {
    if (!first_) out_ += ',';
    first_ = false;
    fmt::format_to(std::back_inserter(out_), "\"{}\":[", name);
    bool first_item = true;
    for (const auto& item : items) {
      if (!first_item) out_ += ',';
      first_item = false;
      append_value(out_, std::invoke(value, item));
      packed_.pass_on();
    }
    out_ += ']';
  }
  void end() { out_ += "},\n"; }

 private:
  Packed& packed_;
  std::string& out_;
  bool first_ = true;
};

class Writer {
 public:
  explicit Writer(const Page& page) : page_(page) {
    for (const auto& entry : page.targets) targets_.push_back(&entry);
    std::stable_sort(targets_.begin(), targets_.end(), [](const Entry* a, const Entry* b) {
      return a->second.best_evalue() < b->second.best_evalue();
    });
    for (const Entry* entry : targets_) {
      for (const PageHit& hit : entry->second.hits) {
        hits_.push_back(&hit);
        for (const PageDomain& domain : hit.domains) domains_.push_back(&domain);
      }
    }
  }

  void write(const Sink& out) const {
    std::string_view rest = page_html();
    for (;;) {
      const std::size_t from = rest.find("{{");
      out(rest.substr(0, from));
      if (from == rest.npos) return;
      const std::size_t to = rest.find("}}", from);
      part(out, rest.substr(from + 2, to - from - 2));
      rest.remove_prefix(to + 2);
    }
  }

 private:
  using Entry = std::pair<const std::uint64_t, PageTarget>;

  void part(const Sink& out, std::string_view name) const {
    std::string text;
    if (name == "title") {
      text::html_text(text, page_.title);
    } else if (name == "style") {
      text += page_css();
    } else if (name == "script") {
      text += page_js();
    } else if (name == "run") {
      run(text);
    } else if (name == "left_out") {
      if (page_.left_out > 0)
        fmt::format_to(std::back_inserter(text),
                       "<p>The best {} of {} selected sequences are on this page.</p>\n",
                       targets_.size(), targets_.size() + page_.left_out);
    } else if (name == "data") {
      return data(out);
    } else if (name == "alignments") {
      return alignments(out);
    } else {
      throw std::logic_error("the page has no part " + std::string(name));
    }
    out(text);
  }

  void run(std::string& out) const {
    for (const auto& [key, value] : page_.run) {
      out += "<tr><th scope=\"row\">";
      text::html_text(out, key);
      out += "</th><td>";
      text::html_text(out, value);
      out += "</td></tr>\n";
    }
  }

  void data(const Sink& output) const {
    Packed out(output);
    out.text += '{';
    {
      Columns models(out, "models");
      models.add("name", page_.models, &PageModel::name);
      models.add("accession", page_.models, &PageModel::accession);
      models.add("description", page_.models, &PageModel::description);
      models.add("length", page_.models, &PageModel::length);
      models.add("reported", page_.models, &PageModel::reported);
      models.add("included", page_.models, &PageModel::included);
      if (std::ranges::any_of(page_.models,
                              [](const PageModel& model) { return model.targets.has_value(); })) {
        const auto count = [&](std::string_view name, auto member) {
          models.add(name, page_.models,
                     [&](const PageModel& model) { return (model.*member).value_or(0); });
        };
        count("targets", &PageModel::targets);
        count("msv", &PageModel::msv);
        count("bias", &PageModel::bias);
        count("viterbi", &PageModel::viterbi);
        count("forward", &PageModel::forward);
      }
      models.end();
    }
    {
      Columns targets(out, "targets");
      const auto add = [&](std::string_view name, auto value) {
        targets.add(name, targets_,
                    [&](const Entry* entry) { return std::invoke(value, entry->second); });
      };
      add("name", &PageTarget::name);
      add("accession", &PageTarget::accession);
      add("description", &PageTarget::description);
      add("length", &PageTarget::length);
      targets.add("index", targets_, [](const Entry* entry) { return entry->first & kIndexOfResult; });
      if (page_.results.size() > 1) add("file", &PageTarget::result);
      add("hits", [](const PageTarget& target) { return target.hits.size(); });
      targets.end();
    }
    {
      Columns hits(out, "hits");
      hits.add("model", hits_, &PageHit::model);
      hits.add("included", hits_, &PageHit::included);
      hits.add("evalue", hits_, &PageHit::evalue);
      hits.add("score", hits_, &PageHit::score);
      hits.add("bias", hits_, &PageHit::bias);
      hits.add("domains", hits_, [](const PageHit* hit) { return hit->domains.size(); });
      hits.end();
    }
    {
      Columns domains(out, "domains");
      domains.add("number", domains_, &PageDomain::number);
      domains.add("included", domains_, &PageDomain::included);
      if (std::ranges::any_of(domains_, [](const PageDomain* d) { return d->kept.has_value(); }))
        domains.add("kept", domains_, &PageDomain::kept);
      domains.add("c_evalue", domains_, &PageDomain::c_evalue);
      domains.add("i_evalue", domains_, &PageDomain::i_evalue);
      domains.add("score", domains_, &PageDomain::score);
      domains.add("accuracy", domains_, &PageDomain::accuracy);
      domains.add("hmm_from", domains_, &PageDomain::hmm_from);
      domains.add("hmm_to", domains_, &PageDomain::hmm_to);
      domains.add("ali_from", domains_, &PageDomain::ali_from);
      domains.add("ali_to", domains_, &PageDomain::ali_to);
      // Envelopes are drawn from left to right on both strands.
      domains.add("env_from", domains_,
                  [](const PageDomain* d) { return std::min(d->env_from, d->env_to); });
      domains.add("env_to", domains_,
                  [](const PageDomain* d) { return std::max(d->env_from, d->env_to); });
      domains.end();
    }
    out.text += "\"results\":[";
    for (std::size_t i = 0; page_.results.size() > 1 && i < page_.results.size(); ++i) {
      if (i > 0) out.text += ',';
      text::json_string(out.text, page_.results[i]);
    }
    out.text += fmt::format("],\"part_size\":{}}}", kPartSize);
    out.end();
  }

  // One line per part: a list with [model, match, target, pp] or null for each domain.
  void alignments(const Sink& out) const {
    if (std::ranges::none_of(domains_, [](const PageDomain* d) { return !d->model.empty(); }))
      return;
    for (std::size_t at = 0; at < domains_.size(); at += kPartSize) {
      Packed packed(out);
      std::string& json = packed.text;
      for (std::size_t i = at; i < std::min(domains_.size(), at + kPartSize); ++i) {
        const PageDomain& domain = *domains_[i];
        json += i == at ? '[' : ',';
        if (domain.model.empty()) {
          json += "null";
          continue;
        }
        char before = '[';
        for (const std::string* line : {&domain.model, &domain.match, &domain.target, &domain.pp}) {
          json += before;
          text::json_string(json, *line);
          before = ',';
        }
        json += ']';
      }
      json += ']';
      packed.end();
      out("\n");
    }
  }

  const Page& page_;
  std::vector<const Entry*> targets_;  // by best E-value
  std::vector<const PageHit*> hits_;
  std::vector<const PageDomain*> domains_;
};

}  // namespace

double PageTarget::best_evalue() const {
  double best = std::numeric_limits<double>::infinity();
  for (const PageHit& hit : hits) best = std::min(best, hit.evalue);
  return best;
}

std::string page_title(const std::string& models, const std::string& targets) {
  return fmt::format("{} x {}", file_name(models), file_name(targets));
}

void add_result(Page& page, Page other, const std::string& name) {
  const std::size_t result = page.results.size();
  page.results.push_back(name);
  std::string run;
  for (const auto& [key, value] : other.run)
    run += (run.empty() ? "" : "; ") + key + ": " + value;
  page.run.emplace_back(page.results.back(), run);
  const auto identity = [](const PageModel& model) {
    return std::tuple(model.name, model.accession, model.length);
  };
  std::map<std::tuple<std::string, std::string, int>, std::size_t> known;
  for (std::size_t i = 0; i < page.models.size(); ++i) known.emplace(identity(page.models[i]), i);
  std::vector<std::size_t> places;
  for (PageModel& model : other.models) {
    const auto [found, is_new] = known.emplace(identity(model), page.models.size());
    places.push_back(found->second);
    if (is_new) {
      page.models.push_back(std::move(model));
      continue;
    }
    PageModel& same = page.models[found->second];
    same.reported += model.reported;
    same.included += model.included;
    for (const auto count : {&PageModel::targets, &PageModel::msv, &PageModel::bias,
                             &PageModel::viterbi, &PageModel::forward}) {
      if (model.*count) same.*count = (same.*count).value_or(0) + *(model.*count);
    }
  }
  for (auto& [index, target] : other.targets) {
    target.result = result;
    for (PageHit& hit : target.hits) hit.model = places[hit.model];
    page.targets.emplace(index | static_cast<std::uint64_t>(result) << kIndexBits,
                         std::move(target));
  }
}

std::string make_html_page(const Page& page) {
  std::string text;
  write_html_page(page, [&text](std::string_view piece) { text += piece; });
  return text;
}

void write_html_page(const Page& page, const std::function<void(std::string_view)>& out) {
  Writer(page).write(out);
}

}  // namespace hmmjit
