#include "option_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <clocale>
#include <cmath>
#include <cstdlib>

#include "core/numbers.hpp"
#include "core/text_fields.hpp"
#include "core/threads.hpp"

namespace hmmjit::tools {
namespace {

// Separates the values of a repeated option.
constexpr char kBetweenValues = '\n';

std::size_t distance(std::string_view a, std::string_view b) {
  // Three rows of the matrix: for the current letter and the two before it.
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::unexpected<Error> usage(std::string message) {
  return fail(ErrorCode::kUsage, std::move(message), {}, "see --help or -h for the options");
}

std::string_view type_name(ValueType type) {
  return type == ValueType::kInteger ? "integer" : "real-valued";
}

// Numbers as in hmmsearch: strtod's in the "C" locale, also hexadecimal and "inf"; overflow gives
// infinity. Refuses NaN, which no threshold can be.
std::optional<double> parse_c_real(std::string_view text) {
  static const locale_t locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
  if (text.empty()) return std::nullopt;
  const std::string copy(text);
  char* end = nullptr;
  const double value = ::strtod_l(copy.c_str(), &end, locale);
  if (end != copy.c_str() + copy.size() || std::isnan(value)) return std::nullopt;
  return value;
}

// As in HMMER, blanks may surround numbers.
std::string value_text(const OptionSpec& option, std::string_view text) {
  const bool is_number = option.type == ValueType::kInteger || option.type == ValueType::kReal;
  return std::string(is_number ? trim(text) : text);
}

// Ranges are written "x>0", "n>=120" or "0<=x<0.5".
bool in_range(double value, std::string_view range) {
  if (range.empty()) return true;
  if (const std::size_t lower = range.find('<'); lower != range.npos) {
    const std::size_t upper = range.rfind('<');
    const auto compare = [&](std::size_t at, std::string_view low, std::string_view high) {
      const double a = low.empty() ? value : *parse_real(low);
      const double b = high.empty() ? value : *parse_real(high);
      return range[at + 1] == '=' ? a <= b : a < b;
    };
    return compare(lower, range.substr(0, lower), {}) &&
           compare(upper, {}, range.substr(range[upper + 1] == '=' ? upper + 2 : upper + 1));
  }
  const bool or_equal = range.substr(1, 2) == ">=";
  const double limit = *parse_real(range.substr(or_equal ? 3 : 2));
  return or_equal ? value >= limit : value > limit;
}

Status check_value(const OptionSpec& option, const std::string& text, const char* origin) {
  const auto complain = [&](std::string_view what) {
    return usage(fmt::format("option {} takes {} argument{}; got {} {}", option.name,
                             type_name(option.type), what, text, origin));
  };
  if (option.type == ValueType::kInteger || option.type == ValueType::kReal) {
    const auto integer = parse_int(text);
    const auto real =
        option.type == ValueType::kInteger
            ? (integer ? std::optional<double>(static_cast<double>(*integer)) : std::nullopt)
            : parse_c_real(text);
    if (!real) return complain("");
    if (!in_range(*real, option.range)) return complain(fmt::format(" in range {}", option.range));
    if (option.type == ValueType::kInteger && !std::in_range<int>(*integer))
      return complain(" up to 2147483647");
  }
  if (option.closed) {
    const std::vector<std::string> choices = split_list(option.offers);
    if (std::ranges::find(choices, text) == choices.end())
      return fail(
          ErrorCode::kUsage, fmt::format("option {} does not know \"{}\"", option.name, text), {},
          did_you_mean(text, choices, fmt::format("it takes {}", fmt::join(choices, ", "))));
  }
  return {};
}

// Options of other programs, and their names here.
constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
    {"--evalue", "-E"},  {"--e-value", "-E"},       {"-e", "-E"},          {"--threads", "--cpu"},
    {"--cpus", "--cpu"}, {"--ncpu", "--cpu"},       {"-j", "--cpu"},       {"-p", "--cpu"},
    {"--output", "-o"},  {"--out", "-o"},           {"-t", "-T"},          {"-z", "-Z"},
    {"--score", "-T"},   {"--gpu", "--device gpu"}, {"--memory", "--mem"}, {"-a", "-A"},
    {"-v", "--verbose"}, {"-q", "--quiet"},
};

std::unexpected<Error> no_such_option(std::span<const OptionSpec> table, std::string_view name) {
  const std::string message = fmt::format("no such option \"{}\"", name);
  const auto known =
      std::ranges::find(kElsewhere, name, [](const auto& pair) { return pair.first; });
  const auto here = [&](std::string_view option) {
    return std::ranges::any_of(table, [&](const OptionSpec& spec) {
      return !spec.absent && spec.name == option.substr(0, option.find(' '));
    });
  };
  if (known != std::end(kElsewhere) && here(known->second))
    return fail(ErrorCode::kUsage, message, {}, fmt::format("did you mean {}?", known->second));
  std::vector<std::string> names;
  for (const OptionSpec& option : table) {
    if (option.name.starts_with("--") && !option.help.empty()) names.emplace_back(option.name);
  }
  return fail(ErrorCode::kUsage, message, {},
              did_you_mean(name, names, "see --help or -h for the options"));
}

std::string with_hyphens(std::string_view name) {
  std::string out(name);
  std::ranges::replace(out, '_', '-');
  return out;
}

// The option of a long name or its abbreviation. Abbreviations that are unique in HMMER are unique
// here.
Result<std::size_t> find_long(std::span<const OptionSpec> table, std::string_view name) {
  std::vector<std::size_t> matches, own;
  const std::string given = with_hyphens(name);
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].absent) continue;
    for (const std::string_view known : {table[i].name, table[i].other_name}) {
      const std::string spelling = with_hyphens(known);
      if (known == name || spelling == given) return i;
      if (spelling.starts_with(given))
        (table[i].own || known == table[i].other_name ? own : matches).push_back(i);
    }
  }
  if (matches.empty()) matches = std::move(own);
  if (matches.empty()) return no_such_option(table, name);
  if (matches.size() > 1) return usage(fmt::format("abbreviated option \"{}\" is ambiguous", name));
  return matches.front();
}

Result<std::size_t> find_short(std::span<const OptionSpec> table, std::string_view name) {
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (!table[i].absent && (table[i].name == name || table[i].other_name == name)) return i;
  }
  return no_such_option(table, name);
}

// An option and its value on the command line.
struct Given {
  std::size_t option;
  std::string value;
};

// The options in the word at `at`; moves `at` past the word and a value in the next one.
Result<std::vector<Given>> take_options(std::span<const OptionSpec> table,
                                        std::span<const std::string> words, std::size_t& at) {
  const std::string& word = words[at++];
  // The value in the next word. Refuses text that looks like an option: a value was probably
  // forgotten.
  const auto next_value = [&](const OptionSpec& spec) -> Result<std::string> {
    if (at >= words.size()) return usage(fmt::format("option {} requires an argument", spec.name));
    const bool is_text = spec.type == ValueType::kString || spec.type == ValueType::kFile;
    const std::string& value = words[at];
    if (is_text && value.size() > 1 && value.front() == '-')
      return usage(fmt::format("argument {0} looks like an option; write {1}{2}{0} if it is meant",
                               value, spec.name, spec.name.starts_with("--") ? "=" : ""));
    ++at;
    return value;
  };
  std::vector<Given> given;
  if (word.starts_with("--")) {
    const std::size_t equals = word.find('=');
    HMMJIT_ASSIGN(const std::size_t option,
                  find_long(table, std::string_view(word).substr(0, equals)));
    const bool has_value = equals != std::string::npos;
    std::string value;
    if (table[option].type == ValueType::kNone) {
      if (has_value)
        return usage(fmt::format("option {} does not take an argument", table[option].name));
    } else if (has_value) {
      value = word.substr(equals + 1);
    } else {
      HMMJIT_ASSIGN(value, next_value(table[option]));
    }
    given.push_back({option, std::move(value)});
    return given;
  }
  // One or more one-letter options; the first that takes a value takes the rest.
  for (std::size_t c = 1; c < word.size(); ++c) {
    HMMJIT_ASSIGN(const std::size_t option, find_short(table, std::string("-") + word[c]));
    std::string value;
    const bool takes_value = table[option].type != ValueType::kNone;
    if (takes_value && c + 1 < word.size()) {
      value = word.substr(c + 1);
    } else if (takes_value) {
      HMMJIT_ASSIGN(value, next_value(table[option]));
    }
    given.push_back({option, std::move(value)});
    if (takes_value) break;
  }
  return given;
}

bool is_option(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

}  // namespace

std::string did_you_mean(std::string_view typed, std::span<const std::string> names,
                         std::string otherwise) {
  std::size_t least = typed.size() > 5 ? 3 : 2;
  for (const std::string& name : names) {
    const std::size_t d = distance(typed, name);
    if (d < least && d < name.size()) {
      least = d;
      otherwise = fmt::format("did you mean {}?", name);
    }
  }
  return otherwise;
}

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string out;
  for (std::size_t at; (at = text.find(what)) != text.npos; text.remove_prefix(at + what.size()))
    (out += text.substr(0, at)) += by;
  return out += text;
}

std::string replaced(std::string_view text, Replacements words) {
  std::string out;
  for (std::size_t at; (at = text.find('{')) != text.npos;) {
    out += text.substr(0, at);
    text.remove_prefix(at);
    const auto word =
        std::ranges::find_if(words, [&](const auto& pair) { return text.starts_with(pair.first); });
    out += word == words.end() ? "{" : word->second;
    text.remove_prefix(word == words.end() ? 1 : word->first.size());
  }
  return out += text;
}

std::vector<std::string> split_list(std::string_view list, char separator) {
  std::vector<std::string> items;
  while (!list.empty()) items.emplace_back(take_up_to(&list, separator));
  return items;
}

std::string word_of(const OptionSpec& option, std::string_view value) {
  const bool equals = option.type != ValueType::kNone && option.name.starts_with("--");
  return fmt::format("{}{}{}", option.name, equals ? "=" : "", value);
}

std::size_t ParsedOptions::find(std::string_view name) const {
  const auto found = std::ranges::find(table_, name, &OptionSpec::name);
  if (found == table_.end()) std::abort();  // not in the table: a programming error
  return static_cast<std::size_t>(found - table_.begin());
}

bool ParsedOptions::knows(std::string_view name) const {
  return std::ranges::any_of(
      table_, [&](const OptionSpec& spec) { return spec.name == name && !spec.absent; });
}

bool ParsedOptions::is_set(std::string_view name) const { return values_[find(name)].has_value(); }

std::string_view ParsedOptions::text(std::string_view name) const {
  const std::size_t i = find(name);
  return values_[i] ? std::string_view(*values_[i]) : table_[i].default_text;
}

std::string ParsedOptions::path(std::string_view name) const {
  return knows(name) ? std::string(text(name)) : std::string();
}

double ParsedOptions::real(std::string_view name) const { return *parse_c_real(text(name)); }

int ParsedOptions::integer(std::string_view name) const {
  return static_cast<int>(*parse_int(text(name)));
}

int ParsedOptions::threads() const {
  return is_set("--cpu") ? std::clamp(integer("--cpu"), 1, 1024) : available_cores();
}

std::optional<double> ParsedOptions::given_real(std::string_view name) const {
  if (!is_set(name)) return std::nullopt;
  return real(name);
}

std::vector<std::string> ParsedOptions::list(std::string_view name) const {
  return split_list(text(name), kBetweenValues);
}

Result<std::uint64_t> ParsedOptions::bytes(std::string_view name) const {
  if (!is_set(name) && text(name).empty()) return 0;
  const auto bytes = parse_bytes(text(name));
  if (bytes && *bytes > 0) return *bytes;
  return fail(ErrorCode::kUsage, fmt::format("option {} takes a size; got {}", name, text(name)),
              {}, fmt::format("write for example {0} 400M or {0} 2G", name));
}

const char* ParsedOptions::first_given(std::initializer_list<const char*> names) const {
  const auto found =
      std::ranges::find_if(names, [&](const char* name) { return knows(name) && is_set(name); });
  return found == names.end() ? nullptr : *found;
}

std::vector<HeaderSetting> ParsedOptions::changed() const {
  std::vector<HeaderSetting> out;
  for (std::size_t i = 0; i < table_.size(); ++i) {
    const OptionSpec& option = table_[i];
    if (values_[i] && (option.type == ValueType::kNone || *values_[i] != option.default_text))
      out.push_back({option.name, option.type == ValueType::kInteger
                                      ? std::to_string(integer(option.name))
                                      : *values_[i]});
  }
  return out;
}

ParsedOptions ParsedOptions::with(std::vector<std::string> arguments, Replacements words) const {
  ParsedOptions out = *this;
  out.arguments_ = std::move(arguments);
  for (std::size_t i = 0; i < table_.size(); ++i) {
    std::optional<std::string>& value = out.values_[i];
    if (table_[i].type == ValueType::kFile && value) value = replaced(*value, words);
  }
  return out;
}

ParsedOptions ParsedOptions::on_files(std::vector<std::string> arguments,
                                      std::span<const NamedFile> files) const {
  ParsedOptions out = *this;
  out.given_ = std::make_shared<const ParsedOptions>(given());
  out.arguments_ = std::move(arguments);
  for (const NamedFile& file : files) out.values_[find(file.option)] = file.path;
  return out;
}

std::vector<std::string> ParsedOptions::words() const {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < table_.size(); ++i) {
    if (!values_[i] || table_[i].name == "--server") continue;
    const bool joined = table_[i].several || table_[i].listed;
    for (const std::string& value :
         joined ? split_list(*values_[i], kBetweenValues) : std::vector<std::string>{*values_[i]})
      words.push_back(word_of(table_[i], value));
  }
  words.emplace_back("--");
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  return words;
}

std::string ParsedOptions::settings() const {
  std::string out;
  for (std::size_t i = 0; i < table_.size(); ++i) {
    if (!values_[i] || table_[i].name == "--hmmer-banner" || table_[i].name == "--server") continue;
    (out += table_[i].name) += ' ';
    if (table_[i].type != ValueType::kNone) (out += *values_[i]) += ' ';
  }
  return out;
}

Result<ParsedOptions> parse_options(std::span<const OptionSpec> table,
                                    std::span<const std::string> arguments, bool with_environment) {
  ParsedOptions parsed;
  parsed.table_ = table;
  parsed.values_.resize(table.size());
  for (std::size_t at = 0; at < arguments.size();) {
    if (arguments[at] == "--") {
      parsed.arguments_.insert(parsed.arguments_.end(),
                               arguments.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                               arguments.end());
      break;
    }
    if (!is_option(arguments[at])) {
      parsed.arguments_.push_back(arguments[at++]);
      continue;
    }
    HMMJIT_ASSIGN(std::vector<Given> given, take_options(table, arguments, at));
    for (Given& one : given) {
      const OptionSpec& spec = table[one.option];
      // Elsewhere, empty text would mean that these are not given.
      constexpr std::string_view kNeverEmpty[] = {"--restrictdb_stkey", "--chkhmm", "--chkali",
                                                  "--output"};
      if (one.value.empty() && std::ranges::find(kNeverEmpty, spec.name) != std::end(kNeverEmpty))
        return usage(fmt::format("the argument of option {} is empty", spec.name));
      one.value = value_text(spec, one.value);
      std::optional<std::string>& value = parsed.values_[one.option];
      if (value && !spec.several && !spec.listed)
        return usage(fmt::format("option {} has already been set on the command line", spec.name));
      const std::vector<std::string> items =
          spec.listed ? split_list(one.value) : std::vector<std::string>{one.value};
      for (const std::string& item : items)
        HMMJIT_TRY(check_value(spec, item, "on the command line"));
      const std::string all = fmt::format("{}", fmt::join(items, std::string(1, kBetweenValues)));
      value = value ? *value + kBetweenValues + all : all;
    }
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (parsed.values_[i] || table[i].environment.empty() || !with_environment) continue;
    const char* given = std::getenv(std::string(table[i].environment).c_str());
    if (given == nullptr || *given == '\0') continue;
    const std::string value = value_text(table[i], given);
    HMMJIT_TRY(check_value(
        table[i], value, fmt::format("in environment variable {}", table[i].environment).c_str()));
    parsed.values_[i] = value;
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (!parsed.values_[i]) continue;
    for (const std::string& other : split_list(table[i].excludes)) {
      if (other != table[i].name && parsed.is_set(other))
        return usage(fmt::format("option {} is incompatible with {}", table[i].name, other));
    }
    std::vector<std::string> needed = split_list(table[i].needs);
    std::erase_if(needed, [&](const std::string& name) { return !parsed.knows(name); });
    if (!needed.empty() && !parsed.is_set("-h") &&
        std::ranges::none_of(needed, [&](const std::string& name) { return parsed.is_set(name); }))
      return usage(fmt::format("option {} means nothing without {}", table[i].name,
                               fmt::join(needed, " or ")));
  }
  return parsed;
}

std::size_t first_argument(std::span<const OptionSpec> table,
                           std::span<const std::string> arguments) {
  std::size_t at = 0;
  while (at < arguments.size() && is_option(arguments[at])) {
    if (!take_options(table, arguments, at)) return arguments.size();
  }
  return at;
}

std::string option_help(std::span<const OptionSpec> table) {
  std::string out;
  std::vector<std::string_view> groups;
  for (const OptionSpec& option : table) {
    if (!option.group.empty() && std::ranges::find(groups, option.group) == groups.end())
      groups.push_back(option.group);
  }
  const auto left_side = [](const OptionSpec& option) {
    // "-o, --output"; "-h" alone, as HMMER has it.
    std::string text(option.name);
    if (option.name.starts_with("--") && !option.other_name.empty())
      text = fmt::format("{}, {}", option.other_name, option.name);
    if (option.type != ValueType::kNone) text += fmt::format(" <{}>", option.value_name);
    return text;
  };
  for (const std::string_view group : groups) {
    std::size_t width = 0;
    for (const OptionSpec& option : table) {
      if (option.group == group) width = std::max(width, left_side(option).size());
    }
    out += fmt::format("{}{}:\n", out.empty() ? "" : "\n", group);
    for (const OptionSpec& option : table) {
      if (option.group == group)
        out += fmt::format("  {:{}} : {}\n", left_side(option), width, help_of(option));
    }
  }
  return out;
}

std::string help_of(const OptionSpec& option) {
  std::string help(option.help);
  if (!option.default_text.empty()) help += fmt::format("  [{}]", option.default_text);
  if (!option.range.empty()) help += fmt::format("  ({})", option.range);
  return help;
}

}  // namespace hmmjit::tools
