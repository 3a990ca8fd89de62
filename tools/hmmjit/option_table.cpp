#include "option_table.hpp"

#include <algorithm>
#include <clocale>
#include <cmath>
#include <cstdlib>

#include "core/numbers.hpp"
#include "suggestion.hpp"

namespace hmmjit::tools {
namespace {

std::unexpected<Error> usage(std::string message) {
  return fail(ErrorCode::kUsage, std::move(message), {}, "see --help or -h for the options");
}

std::string_view type_name(ValueType type) {
  return type == ValueType::kInteger ? "integer" : "real-valued";
}

// Numbers as hmmsearch takes them: with what strtod accepts in the "C" locale, hexadecimal and
// "inf" among it, too large is infinite. No threshold can be compared with NaN: it is refused.
std::optional<double> parse_c_real(std::string_view text) {
  static const locale_t locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
  if (text.empty() || text.front() == ' ' || (text.front() >= '\t' && text.front() <= '\r'))
    return std::nullopt;
  const std::string copy(text);
  char* end = nullptr;
  const double value = ::strtod_l(copy.c_str(), &end, locale);
  if (end != copy.c_str() + copy.size() || std::isnan(value)) return std::nullopt;
  return value;
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
    return usage("option " + std::string(option.name) + " takes " +
                 std::string(type_name(option.type)) + " argument" + std::string(what) + "; got " +
                 text + " " + origin);
  };
  if (option.type == ValueType::kInteger || option.type == ValueType::kReal) {
    const auto integer = parse_int(text);
    const auto real =
        option.type == ValueType::kInteger
            ? (integer ? std::optional<double>(static_cast<double>(*integer)) : std::nullopt)
            : parse_c_real(text);
    if (!real) return complain("");
    if (!in_range(*real, option.range)) return complain(" in range " + std::string(option.range));
  }
  return {};
}

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> items;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    items.push_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return items;
}

// Options of other programs, and what they are called here.
constexpr std::pair<std::string_view, std::string_view> kElsewhere[] = {
    {"--evalue", "-E"},  {"--e-value", "-E"},       {"-e", "-E"},          {"--threads", "--cpu"},
    {"--cpus", "--cpu"}, {"--ncpu", "--cpu"},       {"-j", "--cpu"},       {"-p", "--cpu"},
    {"--output", "-o"},  {"--out", "-o"},           {"-t", "-T"},          {"-z", "-Z"},
    {"--score", "-T"},   {"--gpu", "--device gpu"}, {"--memory", "--mem"}, {"-a", "-A"},
    {"-v", "--verbose"}, {"-q", "--quiet"},
};

std::unexpected<Error> no_such_option(std::span<const OptionSpec> table, std::string_view name) {
  const std::string message = "no such option \"" + std::string(name) + "\"";
  const auto known =
      std::ranges::find(kElsewhere, name, [](const auto& pair) { return pair.first; });
  const auto here = [&](std::string_view option) {
    return std::ranges::any_of(table, [&](const OptionSpec& spec) {
      return !spec.absent && spec.name == option.substr(0, option.find(' '));
    });
  };
  if (known != std::end(kElsewhere) && here(known->second))
    return fail(ErrorCode::kUsage, message, {}, "did you mean " + std::string(known->second) + "?");
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

// The option an abbreviated or full long name means. hmmsearch's options come first: what was a
// unique abbreviation there is one here.
Result<std::size_t> find_long(std::span<const OptionSpec> table, std::string_view name) {
  std::vector<std::size_t> matches;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].absent) continue;
    if (table[i].name == name) return i;
    const std::string spelling = with_hyphens(table[i].name), given = with_hyphens(name);
    if (spelling == given) return i;
    if (spelling.starts_with(given)) matches.push_back(i);
  }
  if (matches.size() > 1 && !table[matches.front()].own)
    std::erase_if(matches, [&](std::size_t i) { return table[i].own; });
  if (matches.empty()) return no_such_option(table, name);
  if (matches.size() > 1)
    return usage("abbreviated option \"" + std::string(name) + "\" is ambiguous");
  return matches.front();
}

}  // namespace

std::size_t ParsedOptions::find(std::string_view name) const {
  for (std::size_t i = 0; i < table_.size(); ++i) {
    if (table_[i].name == name) return i;
  }
  std::abort();  // a name that is not in the table: a programming error
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

double ParsedOptions::real(std::string_view name) const { return *parse_c_real(text(name)); }

std::int64_t ParsedOptions::integer(std::string_view name) const { return *parse_int(text(name)); }

std::optional<double> ParsedOptions::given_real(std::string_view name) const {
  if (!is_set(name)) return std::nullopt;
  return real(name);
}

Result<std::uint64_t> ParsedOptions::bytes(std::string_view name) const {
  const auto bytes = parse_bytes(text(name));
  if (bytes && *bytes > 0) return *bytes;
  const std::string option(name);
  return fail(ErrorCode::kUsage,
              "option " + option + " takes a size; got " + std::string(text(name)), {},
              "write for example " + option + " 400M or " + option + " 2G");
}

bool ParsedOptions::differs_from_default(std::string_view name) const {
  const std::size_t i = find(name);
  return values_[i] &&
         (table_[i].type == ValueType::kNone || *values_[i] != table_[i].default_text);
}

ParsedOptions ParsedOptions::with(std::vector<std::string> arguments, std::string_view placeholder,
                                  std::string_view replacement) const {
  ParsedOptions out = *this;
  out.arguments_ = std::move(arguments);
  for (std::size_t i = 0; i < table_.size(); ++i) {
    if (table_[i].type != ValueType::kFile || !out.values_[i]) continue;
    std::string& value = *out.values_[i];
    for (std::size_t at = value.find(placeholder); at != value.npos;
         at = value.find(placeholder, at + replacement.size()))
      value.replace(at, placeholder.size(), replacement);
  }
  return out;
}

std::string ParsedOptions::settings() const {
  std::string out;
  for (std::size_t i = 0; i < table_.size(); ++i) {
    if (!values_[i] || table_[i].name == "--hmmer-banner") continue;
    (out += table_[i].name) += ' ';
    if (table_[i].type != ValueType::kNone) (out += *values_[i]) += ' ';
  }
  return out;
}

Result<ParsedOptions> parse_options(std::span<const OptionSpec> table,
                                    std::span<const std::string> arguments) {
  ParsedOptions parsed;
  parsed.table_ = table;
  parsed.values_.resize(table.size());

  std::size_t at = 0;
  const auto set = [&](std::size_t option, std::string value) -> Status {
    if (parsed.values_[option])
      return usage("option " + std::string(table[option].name) +
                   " has already been set on the command line");
    HMMJIT_TRY(check_value(table[option], value, "on the command line"));
    parsed.values_[option] = std::move(value);
    return {};
  };
  // The value in the next argument. Text that looks like an option was more likely meant as one.
  const auto next_value = [&](std::size_t option) -> Result<std::string> {
    const OptionSpec& spec = table[option];
    if (at >= arguments.size())
      return usage("option " + std::string(spec.name) + " requires an argument");
    const bool is_text = spec.type == ValueType::kString || spec.type == ValueType::kFile;
    const std::string& value = arguments[at];
    if (is_text && value.size() > 1 && value.front() == '-')
      return usage("argument " + value + " looks like an option; write " + std::string(spec.name) +
                   (spec.name.starts_with("--") ? "=" : "") + value + " if it is meant");
    ++at;
    return value;
  };

  bool options_ended = false;
  while (at < arguments.size()) {
    const std::string& argument = arguments[at];
    ++at;
    if (options_ended || argument.size() < 2 || argument.front() != '-') {
      parsed.arguments_.push_back(argument);
      continue;
    }
    if (argument == "--") {
      options_ended = true;
      continue;
    }
    if (argument.starts_with("--")) {
      const std::size_t equals = argument.find('=');
      HMMJIT_ASSIGN(const std::size_t option,
                    find_long(table, std::string_view(argument).substr(0, equals)));
      const bool has_value = equals != std::string::npos;
      if (table[option].type == ValueType::kNone) {
        if (has_value)
          return usage("option " + std::string(table[option].name) + " does not take an argument");
        HMMJIT_TRY(set(option, {}));
      } else if (has_value) {
        HMMJIT_TRY(set(option, argument.substr(equals + 1)));
      } else {
        HMMJIT_ASSIGN(std::string value, next_value(option));
        HMMJIT_TRY(set(option, std::move(value)));
      }
      continue;
    }
    // One or more one-letter options; the first that takes a value takes the rest.
    for (std::size_t c = 1; c < argument.size(); ++c) {
      const std::string name = std::string("-") + argument[c];
      const auto found = std::find_if(table.begin(), table.end(), [&](const OptionSpec& spec) {
        return !spec.absent && spec.name == name;
      });
      if (found == table.end()) return no_such_option(table, name);
      const auto option = static_cast<std::size_t>(found - table.begin());
      if (found->type == ValueType::kNone) {
        HMMJIT_TRY(set(option, {}));
        continue;
      }
      if (c + 1 < argument.size()) {
        HMMJIT_TRY(set(option, argument.substr(c + 1)));
      } else {
        HMMJIT_ASSIGN(std::string value, next_value(option));
        HMMJIT_TRY(set(option, std::move(value)));
      }
      break;
    }
  }

  for (std::size_t i = 0; i < table.size(); ++i) {
    if (parsed.values_[i] || table[i].environment.empty()) continue;
    const char* value = std::getenv(std::string(table[i].environment).c_str());
    if (value == nullptr) continue;
    HMMJIT_TRY(check_value(
        table[i], value, ("in environment variable " + std::string(table[i].environment)).c_str()));
    parsed.values_[i] = value;
  }
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (!parsed.values_[i]) continue;
    for (const std::string_view other : split(table[i].excludes)) {
      if (other != table[i].name && parsed.is_set(other))
        return usage("option " + std::string(table[i].name) + " is incompatible with " +
                     std::string(other));
    }
    const std::vector<std::string_view> needed = split(table[i].needs);
    if (!needed.empty() && !parsed.is_set("-h") &&
        std::ranges::none_of(needed, [&](std::string_view name) { return parsed.is_set(name); })) {
      std::string names;
      for (const std::string_view name : needed)
        (names += names.empty() ? "" : " or ") += name;
      return usage("option " + std::string(table[i].name) + " means nothing without " + names);
    }
  }
  return parsed;
}

std::string option_help(std::span<const OptionSpec> table) {
  std::string out;
  std::vector<std::string_view> groups;
  for (const OptionSpec& option : table) {
    if (!option.group.empty() &&
        std::find(groups.begin(), groups.end(), option.group) == groups.end())
      groups.push_back(option.group);
  }
  const auto left_side = [](const OptionSpec& option) {
    std::string text(option.name);
    if (option.type != ValueType::kNone) text += " <" + std::string(option.value_name) + ">";
    return text;
  };
  for (const std::string_view group : groups) {
    std::size_t width = 0;
    for (const OptionSpec& option : table) {
      if (option.group == group) width = std::max(width, left_side(option).size());
    }
    if (!out.empty()) out += '\n';
    (out += group) += ":\n";
    for (const OptionSpec& option : table) {
      if (option.group != group) continue;
      const std::string text = left_side(option);
      out += "  " + text + std::string(width - text.size(), ' ') + " : ";
      out += option.help;
      if (!option.default_text.empty()) out += "  [" + std::string(option.default_text) + "]";
      if (!option.range.empty()) out += "  (" + std::string(option.range) + ")";
      out += '\n';
    }
  }
  return out;
}

}  // namespace hmmjit::tools
