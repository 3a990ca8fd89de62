#include "report/html_page.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <stdexcept>

#include "report/exact_text.hpp"
#include "report/page_parts.hpp"

namespace hmmjit {
namespace {

// Alignments are unpacked so many domains at a time.
constexpr std::size_t kPartSize = 256;

std::string gzip(std::string_view text) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16, kMemory = 8;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemory,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  const std::unique_ptr<z_stream, decltype(&deflateEnd)> end(&stream, deflateEnd);
  std::string out;
  std::string buffer(std::size_t{1} << 18, '\0');
  int status = Z_OK;
  do {
    if (stream.avail_in == 0 && !text.empty()) {
      constexpr std::size_t kMost = std::size_t{1} << 30;
      const std::string_view piece = text.substr(0, kMost);
      stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(piece.data()));
      stream.avail_in = static_cast<uInt>(piece.size());
      text.remove_prefix(piece.size());
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    status = deflate(&stream, text.empty() ? Z_FINISH : Z_NO_FLUSH);
    out.append(buffer.data(), buffer.size() - stream.avail_out);
  } while (status == Z_OK || status == Z_BUF_ERROR);
  if (status != Z_STREAM_END) throw std::runtime_error("zlib could not compress a page's data");
  return out;
}

void append_base64(std::string& out, std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto byte = [&](std::size_t i) {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u;
  };
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const unsigned group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    out += kDigits[group >> 18];
    out += kDigits[group >> 12 & 63];
    out += i + 1 < bytes.size() ? kDigits[group >> 6 & 63] : '=';
    out += i + 2 < bytes.size() ? kDigits[group & 63] : '=';
  }
}

std::string packed(std::string_view json) {
  std::string out;
  append_base64(out, gzip(json));
  return out;
}

void append_value(std::string& out, const std::string& value) { text::json_string(out, value); }
void append_value(std::string& out, bool value) { out += value ? '1' : '0'; }
void append_value(std::string& out, int value) { out += std::to_string(value); }
void append_value(std::string& out, std::uint64_t value) { out += std::to_string(value); }
// Nine digits hold any float; an E-value needs no more.
void append_value(std::string& out, double value) {
  if (value - value != 0) {
    out += "null";  // infinite
  } else {
    fmt::format_to(std::back_inserter(out), "{:.9g}", value);
  }
}

// {"name": [a value of each item], ...}
class Columns {
 public:
  Columns(std::string& out, std::string_view name) : out_(out) {
    fmt::format_to(std::back_inserter(out_), "\"{}\":{{", name);
  }

  template <typename Items, typename Value>
  void add(std::string_view name, const Items& items, Value value) {
    if (!first_) out_ += ',';
    first_ = false;
    fmt::format_to(std::back_inserter(out_), "\"{}\":[", name);
    bool first_item = true;
    for (const auto& item : items) {
      if (!first_item) out_ += ',';
      first_item = false;
      append_value(out_, value(item));
    }
    out_ += ']';
  }
  void end() { out_ += "},\n"; }

 private:
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

  std::string write() const {
    std::string out;
    std::string_view rest = page_html();
    for (;;) {
      const std::size_t from = rest.find("{{");
      out += rest.substr(0, from);
      if (from == rest.npos) return out;
      const std::size_t to = rest.find("}}", from);
      part(out, rest.substr(from + 2, to - from - 2));
      rest.remove_prefix(to + 2);
    }
  }

 private:
  using Entry = std::pair<const std::uint64_t, PageTarget>;

  void part(std::string& out, std::string_view name) const {
    if (name == "title") {
      text::html_text(out, page_.title);
    } else if (name == "style") {
      out += page_css();
    } else if (name == "script") {
      out += page_js();
    } else if (name == "run") {
      run(out);
    } else if (name == "left_out") {
      if (page_.left_out > 0)
        fmt::format_to(std::back_inserter(out),
                       "<p>The best {} of {} reported proteins are on this page.</p>\n",
                       targets_.size(), targets_.size() + page_.left_out);
    } else if (name == "data") {
      out += packed(data());
    } else if (name == "alignments") {
      alignments(out);
    } else {
      throw std::logic_error("the page has no part " + std::string(name));
    }
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

  std::string data() const {
    std::string out = "{";
    {
      Columns models(out, "models");
      const auto add = [&](std::string_view name, auto member) {
        models.add(name, page_.models, [&](const PageModel& model) { return model.*member; });
      };
      add("name", &PageModel::name);
      add("accession", &PageModel::accession);
      add("description", &PageModel::description);
      add("length", &PageModel::length);
      add("reported", &PageModel::reported);
      add("included", &PageModel::included);
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
      const auto add = [&](std::string_view name, auto member) {
        targets.add(name, targets_, [&](const Entry* entry) { return entry->second.*member; });
      };
      add("name", &PageTarget::name);
      add("accession", &PageTarget::accession);
      add("description", &PageTarget::description);
      add("length", &PageTarget::length);
      targets.add("index", targets_, [](const Entry* entry) { return entry->first; });
      targets.add("hits", targets_, [](const Entry* entry) {
        return static_cast<std::uint64_t>(entry->second.hits.size());
      });
      targets.end();
    }
    {
      Columns hits(out, "hits");
      const auto add = [&](std::string_view name, auto member) {
        hits.add(name, hits_, [&](const PageHit* hit) { return hit->*member; });
      };
      hits.add("model", hits_,
               [](const PageHit* hit) { return static_cast<std::uint64_t>(hit->model); });
      add("included", &PageHit::included);
      add("evalue", &PageHit::evalue);
      add("score", &PageHit::score);
      add("bias", &PageHit::bias);
      hits.add("domains", hits_,
               [](const PageHit* hit) { return static_cast<std::uint64_t>(hit->domains.size()); });
      hits.end();
    }
    {
      Columns domains(out, "domains");
      const auto add = [&](std::string_view name, auto member) {
        domains.add(name, domains_, [&](const PageDomain* domain) { return domain->*member; });
      };
      add("number", &PageDomain::number);
      add("included", &PageDomain::included);
      add("c_evalue", &PageDomain::c_evalue);
      add("i_evalue", &PageDomain::i_evalue);
      add("score", &PageDomain::score);
      add("accuracy", &PageDomain::accuracy);
      add("hmm_from", &PageDomain::hmm_from);
      add("hmm_to", &PageDomain::hmm_to);
      add("ali_from", &PageDomain::ali_from);
      add("ali_to", &PageDomain::ali_to);
      add("env_from", &PageDomain::env_from);
      add("env_to", &PageDomain::env_to);
      domains.end();
    }
    out += fmt::format("\"part_size\":{}}}", kPartSize);
    return out;
  }

  // A line for each part: a list with [model, match, target, pp] of each domain, or null.
  void alignments(std::string& out) const {
    if (std::ranges::none_of(domains_, [](const PageDomain* d) { return !d->model.empty(); }))
      return;
    for (std::size_t at = 0; at < domains_.size(); at += kPartSize) {
      std::string json;
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
      (out += packed(json)) += '\n';
    }
  }

  const Page& page_;
  std::vector<const Entry*> targets_;  // in order of their best E-value
  std::vector<const PageHit*> hits_;
  std::vector<const PageDomain*> domains_;
};

}  // namespace

double PageTarget::best_evalue() const {
  double best = std::numeric_limits<double>::infinity();
  for (const PageHit& hit : hits) best = std::min(best, hit.evalue);
  return best;
}

std::string make_html_page(const Page& page) { return Writer(page).write(); }

}  // namespace hmmjit
