#include "report/html_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "report/exact_text.hpp"
#include "report/text.hpp"

namespace hmmjit {
namespace {

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark}
body{font:14px/1.45 system-ui,sans-serif;margin:1.5rem auto;max-width:70rem;padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.15rem;margin-top:2rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%}
th,td{padding:.15rem .5rem;text-align:left;border-bottom:1px solid #8884;vertical-align:top}
td.n,th.n{text-align:right}
table.sortable th{cursor:pointer;position:sticky;top:0;background:Canvas;user-select:none}
th[aria-sort=ascending]::after{content:" \25b2"}th[aria-sort=descending]::after{content:" \25bc"}
tr.weak td{opacity:.55}
table.run{width:auto}table.run th{font-weight:600;white-space:nowrap}
table.run td{overflow-wrap:anywhere}
.target{margin:.9rem 0}.target p{margin:0;overflow-wrap:anywhere}.target svg{width:100%;height:auto}
.dim{opacity:.65}input{font:inherit;padding:.2rem .5rem;width:20rem;max-width:100%}
pre{font-size:12px;overflow-x:auto}svg text{font:11px system-ui,sans-serif}
)";

// Sorts by the data-v value of cells where there is one, else by text; filters by substring.
constexpr std::string_view kScript = R"(
for(const table of document.querySelectorAll("table.sortable")){
  const body=table.tBodies[0];
  table.tHead.addEventListener("click",event=>{
    const head=event.target.closest("th");if(!head)return;
    const column=head.cellIndex,down=head.getAttribute("aria-sort")==="ascending";
    for(const other of table.tHead.rows[0].cells)other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort",down?"descending":"ascending");
    const key=row=>{const cell=row.cells[column];
      return cell.dataset.v===undefined?cell.textContent:Number(cell.dataset.v)};
    const order=(a,b)=>typeof a==="number"?a-b:a.localeCompare(b);
    const rows=[...body.rows].map(row=>[key(row),row]);
    rows.sort((a,b)=>down?order(b[0],a[0]):order(a[0],b[0]));
    body.append(...rows.map(pair=>pair[1]));
  });
}
const filter=document.getElementById("filter");
if(filter)filter.addEventListener("input",()=>{
  const wanted=filter.value.toLowerCase();
  for(const row of document.querySelectorAll("#domains tbody tr"))
    row.hidden=!row.textContent.toLowerCase().includes(wanted);
  for(const target of document.querySelectorAll(".target"))
    target.hidden=!target.textContent.toLowerCase().includes(wanted);
});
)";

constexpr double kWidth = 1000, kLane = 22, kTop = 4;

class Writer {
 public:
  explicit Writer(const Page& page) : page_(page) {
    for (const auto& [index, target] : page.targets) order_.push_back(&target);
    std::stable_sort(order_.begin(), order_.end(), [](const PageTarget* a, const PageTarget* b) {
      return a->best_evalue() < b->best_evalue();
    });
  }

  std::string write() {
    out_ +=
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
        "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>";
    text(page_.title);
    out_ += "</title>\n<style>";
    (out_ += kStyle) += "</style>\n</head>\n<body>\n<h1>";
    text(page_.title);
    out_ += "</h1>\n";
    run();
    models();
    architectures();
    domains();
    out_ += "<script>";
    (out_ += kScript) += "</script>\n</body>\n</html>\n";
    return std::move(out_);
  }

 private:
  void text(std::string_view value) { text::html_text(out_, value); }
  void plain(double value) { text::exact(out_, std::round(value * 100) / 100); }

  void head(std::initializer_list<std::pair<std::string_view, bool>> columns) {
    out_ += "<thead><tr>";
    for (const auto& [name, number] : columns) {
      out_ += number ? "<th class=\"n\">" : "<th>";
      (out_ += name) += "</th>";
    }
    out_ += "</tr></thead>\n<tbody>\n";
  }
  void cell(std::string_view value) {
    out_ += "<td>";
    text(value);
    out_ += "</td>";
  }
  // What is shown is rounded; sorting uses the value.
  template <typename Shown>
  void number(double value, Shown shown) {
    out_ += "<td class=\"n\" data-v=\"";
    if (std::isfinite(value)) {
      text::exact(out_, value);
    } else {
      out_ += "Infinity";  // as scripts spell it
    }
    out_ += "\">";
    shown();
    out_ += "</td>";
  }
  void e_value(double value) {
    number(value, [&] { text::general(out_, value, 0, 2); });
  }
  void bits(double value) {
    number(value, [&] { text::fixed(out_, value, 0, 1); });
  }
  void integer(std::int64_t value) {
    number(static_cast<double>(value), [&] { text::integer(out_, value, 0); });
  }

  void run() {
    if (page_.run.empty()) return;
    out_ += "<table class=\"run\">\n";
    for (const auto& [key, value] : page_.run) {
      out_ += "<tr><th>";
      text(key);
      out_ += "</th>";
      cell(value);
      out_ += "</tr>\n";
    }
    out_ += "</table>\n";
  }

  void models() {
    out_ += "<h2>Models</h2>\n<table class=\"sortable\" id=\"models\">\n";
    const bool counted = std::ranges::any_of(
        page_.models, [](const PageModel& model) { return model.targets.has_value(); });
    if (counted) {
      head({{"model", false},
            {"accession", false},
            {"description", false},
            {"length", true},
            {"reported", true},
            {"included", true},
            {"searched", true},
            {"passed MSV", true},
            {"bias", true},
            {"Viterbi", true},
            {"Forward", true}});
    } else {
      head({{"model", false},
            {"accession", false},
            {"description", false},
            {"length", true},
            {"reported", true},
            {"included", true}});
    }
    for (std::size_t i = 0; i < page_.models.size(); ++i) {
      const PageModel& model = page_.models[i];
      out_ += "<tr><td><svg width=\"12\" height=\"12\"><rect width=\"12\" height=\"12\" fill=\"";
      colour(i);
      out_ += "\"/></svg> ";
      text(model.name);
      out_ += "</td>";
      cell(model.accession);
      cell(model.description);
      integer(model.length);
      integer(static_cast<std::int64_t>(model.reported));
      integer(static_cast<std::int64_t>(model.included));
      if (counted) {
        for (const auto& count :
             {model.targets, model.msv, model.bias, model.viterbi, model.forward})
          integer(static_cast<std::int64_t>(count.value_or(0)));
      }
      out_ += "</tr>\n";
    }
    out_ += "</tbody>\n</table>\n";
  }

  // Neighbouring models get distant hues: multiples of the golden angle.
  void colour(std::size_t model) {
    const double hue = std::fmod(static_cast<double>(model) * 137.508, 360.0);
    out_ += "hsl(";
    text::integer(out_, static_cast<std::int64_t>(hue), 0);
    out_ += ",55%,66%)";
  }

  struct Box {
    const PageHit* hit;
    const PageDomain* domain;
    std::size_t lane;
  };

  // Boxes that overlap are drawn below one another.
  static std::vector<Box> boxes_of(const PageTarget& target, std::size_t& lanes) {
    std::vector<Box> boxes;
    for (const PageHit& hit : target.hits) {
      for (const PageDomain& domain : hit.domains) boxes.push_back({&hit, &domain, 0});
    }
    std::stable_sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) {
      return a.domain->env_from < b.domain->env_from;
    });
    // The first lane that is free: lanes in use by their ends, those that have become free by
    // number.
    using Lane = std::pair<int, std::size_t>;  // end, number
    std::priority_queue<Lane, std::vector<Lane>, std::greater<>> used;
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> free;
    std::size_t count = 0;
    for (Box& box : boxes) {
      while (!used.empty() && used.top().first < box.domain->env_from) {
        free.push(used.top().second);
        used.pop();
      }
      box.lane = free.empty() ? count++ : free.top();
      if (!free.empty()) free.pop();
      used.emplace(box.domain->env_to, box.lane);
    }
    lanes = std::max<std::size_t>(1, count);
    return boxes;
  }

  void architectures() {
    out_ +=
        "<h2>Domain architectures</h2>\n<p><label>Filter: <input id=\"filter\" type=\"search\">"
        "</label></p>\n";
    if (page_.left_out > 0) {
      out_ += fmt::format("<p>The best {} of {} reported targets are shown.</p>\n", order_.size(),
                          order_.size() + page_.left_out);
    }
    int longest = 1;
    for (const PageTarget* target : order_) longest = std::max(longest, target->length);
    const double scale = (kWidth - 2) / longest;
    for (const PageTarget* target : order_) architecture(*target, scale);
    if (order_.empty()) out_ += "<p>No target is reported.</p>\n";
  }

  void architecture(const PageTarget& target, double scale) {
    std::size_t lanes = 0;
    const std::vector<Box> boxes = boxes_of(target, lanes);
    out_ += "<div class=\"target\"><p><b>";
    text(target.name);
    out_ += "</b> ";
    if (!target.accession.empty()) {
      text(target.accession);
      out_ += ' ';
    }
    out_ += fmt::format("<span class=\"dim\">{} aa</span> ", target.length);
    text(target.description);
    out_ += "</p>\n<svg viewBox=\"0 0 1000 ";
    plain(kTop * 2 + kLane * static_cast<double>(lanes));
    out_ += "\" role=\"img\">\n<rect x=\"0\" y=\"";
    plain(kTop + kLane / 2 - 2);
    out_ += "\" height=\"3\" fill=\"#888\" width=\"";
    plain(target.length * scale);
    out_ += "\"/>\n";
    for (const Box& box : boxes) {
      const PageModel& model = page_.models[box.hit->model];
      const double x = (box.domain->env_from - 1) * scale;
      const double width = std::max(2.0, (box.domain->env_to - box.domain->env_from + 1) * scale);
      const double y = kTop + kLane * static_cast<double>(box.lane);
      out_ += "<g><title>";
      text(model.name);
      const PageDomain& d = *box.domain;
      out_ += fmt::format(" {}-{} (model {}-{} of {}), i-Evalue ", d.env_from, d.env_to, d.hmm_from,
                          d.hmm_to, model.length);
      text::general(out_, box.domain->i_evalue, 0, 2);
      out_ += ", ";
      text::fixed(out_, box.domain->score, 0, 1);
      out_ += " bits</title><rect rx=\"5\" x=\"";
      plain(x);
      out_ += "\" y=\"";
      plain(y);
      out_ += "\" height=\"18\" width=\"";
      plain(width);
      out_ += "\" fill=\"";
      colour(box.hit->model);
      out_ += box.domain->included ? "\" stroke=\"#444\"/>"
                                   : "\" stroke=\"#444\" stroke-dasharray=\"3 2\" opacity=\".5\"/>";
      if (width > 7.0 * static_cast<double>(model.name.size())) {
        out_ += "<text x=\"";
        plain(x + width / 2);
        out_ += "\" y=\"";
        plain(y + 13);
        out_ += "\" text-anchor=\"middle\" fill=\"#000\">";
        text(model.name);
        out_ += "</text>";
      }
      out_ += "</g>\n";
    }
    out_ += "</svg>\n";
    alignments(target);
    out_ += "</div>\n";
  }

  void alignments(const PageTarget& target) {
    bool any = false;
    for (const PageHit& hit : target.hits) {
      for (const PageDomain& domain : hit.domains) any |= !domain.model.empty();
    }
    if (!any) return;
    out_ += "<details><summary>alignments</summary>\n";
    for (const PageHit& hit : target.hits) {
      for (const PageDomain& domain : hit.domains) {
        if (domain.model.empty()) continue;
        out_ += "<p>";
        text(page_.models[hit.model].name);
        out_ += fmt::format(" domain {}</p>\n<pre>\n", domain.number);
        constexpr std::size_t kColumns = 100;
        for (std::size_t at = 0; at < domain.model.size(); at += kColumns) {
          if (at > 0) out_ += '\n';
          for (const std::string* line :
               {&domain.model, &domain.match, &domain.target, &domain.pp}) {
            if (at >= line->size()) continue;
            text(std::string_view(*line).substr(at, kColumns));
            out_ += '\n';
          }
        }
        out_ += "</pre>\n";
      }
    }
    out_ += "</details>\n";
  }

  void domains() {
    out_ += "<h2>Domains</h2>\n<table class=\"sortable\" id=\"domains\">\n";
    head({{"target", false},
          {"model", false},
          {"E-value", true},
          {"score", true},
          {"bias", true},
          {"#", true},
          {"c-Evalue", true},
          {"i-Evalue", true},
          {"domain score", true},
          {"model from", true},
          {"to", true},
          {"target from", true},
          {"to", true},
          {"envelope from", true},
          {"to", true},
          {"acc", true}});
    for (const PageTarget* target : order_) {
      for (const PageHit& hit : target->hits) {
        for (const PageDomain& domain : hit.domains) {
          out_ += domain.included ? "<tr>" : "<tr class=\"weak\">";
          cell(target->name);
          cell(page_.models[hit.model].name);
          e_value(hit.evalue);
          bits(hit.score);
          bits(hit.bias);
          integer(domain.number);
          e_value(domain.c_evalue);
          e_value(domain.i_evalue);
          bits(domain.score);
          for (const int coordinate : {domain.hmm_from, domain.hmm_to, domain.ali_from,
                                       domain.ali_to, domain.env_from, domain.env_to})
            integer(coordinate);
          number(domain.accuracy, [&] { text::fixed(out_, domain.accuracy, 0, 2); });
          out_ += "</tr>\n";
        }
      }
    }
    out_ += "</tbody>\n</table>\n";
  }

  const Page& page_;
  std::vector<const PageTarget*> order_;
  std::string out_;
};

}  // namespace

double PageTarget::best_evalue() const {
  double best = std::numeric_limits<double>::infinity();
  for (const PageHit& hit : hits) best = std::min(best, hit.evalue);
  return best;
}

std::string make_html_page(const Page& page) { return Writer(page).write(); }

}  // namespace hmmjit
