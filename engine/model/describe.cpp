#include "model/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace hmmjit {
namespace {

constexpr std::string_view kTransitionNames[kTransitions] = {"MM", "MI", "MD", "IM",
                                                             "II", "DM", "DD"};

// Collects lines; a float is printed with all its bits.
class Text {
 public:
  template <typename T>
  void key(std::string_view name, const T& value) {
    fmt::format_to(std::back_inserter(text_), "{}", name);
    put(value);
    text_ += '\n';
  }
  void put(float v) { fmt::format_to(std::back_inserter(text_), " {:a}", v); }
  void put(int v) { fmt::format_to(std::back_inserter(text_), " {}", v); }
  void put(std::string_view v) { fmt::format_to(std::back_inserter(text_), " {}", v); }
  void node(int k) { fmt::format_to(std::back_inserter(text_), "{}", k); }
  void end_line() { text_ += '\n'; }
  void columns(std::span<const std::string> names) {
    text_ += "# node";
    for (const auto& name : names) text_ += ' ' + name;
    text_ += '\n';
  }
  // Hash of a table's bytes: a short way to see whether two tables are equal.
  template <typename T>
  void digest(std::string_view name, std::span<const T> table) {
    std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
    for (const std::byte b : std::as_bytes(table)) {
      hash = (hash ^ static_cast<std::uint64_t>(b)) * 0x100000001b3u;
    }
    fmt::format_to(std::back_inserter(text_), "{} {} values, digest {:016x}\n", name, table.size(),
                   hash);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

struct Range {
  int first, last;
};

std::vector<std::string> code_names(const Alphabet& alphabet, int count) {
  std::vector<std::string> names;
  for (int x = 0; x < count; ++x) names.emplace_back(1, alphabet.symbols[x]);
  return names;
}

void describe_model(const SearchModel& model, Text& text) {
  const Hmm& hmm = model.hmm;
  text.key("name", hmm.name);
  text.key("accession", hmm.accession.value_or("-"));
  text.key("nodes", hmm.M);
  text.key("alphabet", hmm.alphabet->name);
  text.key("consensus", hmm.consensus);
  const Calibration& c = hmm.calibration;
  text.key("msv_mu", c.msv_mu);
  text.key("msv_lambda", c.msv_lambda);
  text.key("viterbi_mu", c.viterbi_mu);
  text.key("viterbi_lambda", c.viterbi_lambda);
  text.key("forward_tau", c.forward_tau);
  text.key("forward_lambda", c.forward_lambda);
  for (int x = 0; x < hmm.alphabet->K; ++x) {
    text.key(fmt::format("composition_{}", hmm.alphabet->symbols[x]), hmm.compo[x]);
  }
}

void describe_constants(const SearchModel& model, Text& text) {
  const ByteProfile& b = model.bytes;
  text.key("byte_scale", b.scale);
  text.key("byte_base", b.base);
  text.key("byte_bias", static_cast<int>(b.bias));
  text.key("byte_begin_cost", static_cast<int>(b.tbm));
  text.key("byte_end_cost", static_cast<int>(b.tec));
  const WordProfile& w = model.words;
  text.key("word_scale", w.scale);
  text.key("word_base", w.base);
  text.key("word_end_to_c", static_cast<int>(w.ec));
  text.key("word_end_to_j", static_cast<int>(w.ej));
  text.key("word_delete_bound", static_cast<int>(w.ddbound));
  text.key("largest_word", static_cast<int>(*std::max_element(w.match.begin(), w.match.end())));
  text.key("bias_t10", model.bias.t10);
  text.key("bias_t11", model.bias.t11);
  text.digest<float>("match_scores", model.profile.match);
  text.digest<float>("entry_scores", model.profile.entry);
  text.digest<std::uint8_t>("byte_costs", b.cost);
  text.digest<std::int16_t>("word_scores", w.match);
  text.digest<float>("match_odds", model.odds.match);
}

void describe_probabilities(const SearchModel& model, Range range, Text& text) {
  const Hmm& hmm = model.hmm;
  const int K = hmm.alphabet->K;
  std::vector<std::string> names;
  for (const char* kind : {"match_", "insert_"}) {
    for (const auto& symbol : code_names(*hmm.alphabet, K)) names.push_back(kind + symbol);
  }
  names.insert(names.end(), std::begin(kTransitionNames), std::end(kTransitionNames));
  text.columns(names);
  for (int k = range.first; k <= range.last; ++k) {
    text.node(k);
    for (int x = 0; x < K; ++x) text.put(hmm.match_p(k, x));
    for (int x = 0; x < K; ++x) text.put(hmm.insert[static_cast<std::size_t>(k) * K + x]);
    for (int a = 0; a < kTransitions; ++a) text.put(hmm.t(k, static_cast<Transition>(a)));
    text.end_line();
  }
}

void describe_profile(const SearchModel& model, Range range, Text& text) {
  const Profile& p = model.profile;
  auto names = code_names(*p.alphabet, p.alphabet->Kp);
  names.emplace_back("entry");
  names.insert(names.end(), std::begin(kTransitionNames), std::end(kTransitionNames));
  text.columns(names);
  for (int k = range.first; k <= range.last; ++k) {
    text.node(k);
    for (int x = 0; x < p.alphabet->Kp; ++x) text.put(p.match_score(x, k));
    text.put(p.entry[k]);
    for (int a = 0; a < kTransitions; ++a) text.put(p.transition[a][k]);
    text.end_line();
  }
}

void describe_bytes(const SearchModel& model, Range range, Text& text) {
  const ByteProfile& b = model.bytes;
  text.columns(code_names(*model.profile.alphabet, b.Kp));
  for (int k = range.first; k <= range.last; ++k) {
    text.node(k);
    for (int x = 0; x < b.Kp; ++x) {
      text.put(static_cast<int>(b.cost[static_cast<std::size_t>(x) * b.M + k - 1]));
    }
    text.end_line();
  }
}

// Words and odds have the same shape.
template <typename Tables>
void describe_tables(const SearchModel& model, const Tables& t, Range range, Text& text) {
  auto names = code_names(*model.profile.alphabet, t.Kp);
  for (const char* name :
       {"entry", "MM_in", "IM_in", "DM_in", "MD_out", "MI_out", "II_out", "DD_out"}) {
    names.emplace_back(name);
  }
  text.columns(names);
  for (int k = range.first; k <= range.last; ++k) {
    text.node(k);
    const auto at = static_cast<std::size_t>(k) - 1;
    for (int x = 0; x < t.Kp; ++x) text.put(t.match[static_cast<std::size_t>(x) * t.M + at]);
    for (const auto* v :
         {&t.entry, &t.mm_in, &t.im_in, &t.dm_in, &t.md_out, &t.mi_out, &t.ii_out, &t.dd_out}) {
      text.put((*v)[at]);
    }
    text.end_line();
  }
}

void describe_bias(const SearchModel& model, Text& text) {
  text.key("t10", model.bias.t10);
  text.key("t11", model.bias.t11);
  const Alphabet& alphabet = *model.profile.alphabet;
  for (int x = 0; x < alphabet.Kp; ++x) {
    text.key(fmt::format("background_odds_{}", alphabet.symbols[x]), model.bias.odds[0][x]);
    text.key(fmt::format("composition_odds_{}", alphabet.symbols[x]), model.bias.odds[1][x]);
  }
}

void describe_length(const SearchModel& model, int L, Text& text) {
  text.key("length", L);
  text.key("null_p1", null_p1(L));
  text.key("null_score", null_score(L));
  text.key("byte_move_cost", static_cast<int>(model.bytes.tjb(L)));
  text.key("word_move", static_cast<int>(model.words.move(L)));
  for (const bool multihit : {true, false}) {
    const std::string mode = multihit ? "multihit_" : "unihit_";
    const LengthModel length = length_model(L, multihit);
    text.key(mode + "loop", length.loop);
    text.key(mode + "move", length.move);
    text.key(mode + "end_to_c", length.ec);
    text.key(mode + "end_to_j", length.ej);
  }
}

constexpr DescribeView kViews[] = {
    {"model", "name, size, calibration and composition as read"},
    {"probabilities", "match, insert and transition probabilities per node"},
    {"profile", "log odds, entry and transition scores per node, nats"},
    {"constants", "scales, offsets and bounds of the quantised profiles, digests of all tables"},
    {"bytes", "biased byte costs per node (SSV, MSV)"},
    {"words", "16-bit match and transition scores per node (Viterbi)"},
    {"odds", "match and transition odds per node (Forward)"},
    {"bias", "parameters of the composition bias filter"},
    {"length", "everything that depends on the target length"}};

}  // namespace

std::span<const DescribeView> describe_views() { return kViews; }

Result<std::string> describe(const SearchModel& model, std::string_view view,
                             const DescribeOptions& options) {
  const int M = model.hmm.M;
  const Range range{options.first_node, options.last_node == 0 ? M : options.last_node};
  if (range.first < 1 || range.last > M || range.first > range.last) {
    return fail(ErrorCode::kUsage, fmt::format("no nodes {} to {}", range.first, range.last),
                model.hmm.name, fmt::format("the model has nodes 1 to {}", M));
  }
  if (options.length < 1) {
    return fail(ErrorCode::kUsage, fmt::format("target length {}", options.length), {},
                "give at least 1 residue");
  }
  Text text;
  if (view == "model") {
    describe_model(model, text);
  } else if (view == "probabilities") {
    describe_probabilities(model, range, text);
  } else if (view == "profile") {
    describe_profile(model, range, text);
  } else if (view == "constants") {
    describe_constants(model, text);
  } else if (view == "bytes") {
    describe_bytes(model, range, text);
  } else if (view == "words") {
    describe_tables(model, model.words, range, text);
  } else if (view == "odds") {
    describe_tables(model, model.odds, range, text);
  } else if (view == "bias") {
    describe_bias(model, text);
  } else if (view == "length") {
    describe_length(model, options.length, text);
  } else {
    std::string known;
    for (const auto& v : kViews) known += (known.empty() ? "" : ", ") + std::string(v.name);
    return fail(ErrorCode::kUsage, fmt::format("no view named '{}'", view), {},
                "choose one of " + known);
  }
  return text.take();
}

}  // namespace hmmjit
