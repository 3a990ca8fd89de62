#include "parts/part_set.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <utility>

#include "core/folder.hpp"

namespace hmmjit::parts {
namespace {

// File descriptors reserved for outputs and other uses.
constexpr std::uint64_t kOtherDescriptors = 128;

bool may_keep_open(std::size_t files) {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  return limit.rlim_cur == RLIM_INFINITY || files + kOtherDescriptors < limit.rlim_cur;
}

// One end of a share as an exact fraction of the whole.
struct Fraction {
  std::uint64_t numerator, denominator;  // both below 2^32 + 1
  std::strong_ordering operator<=>(const Fraction& other) const {
    return numerator * other.denominator <=> other.numerator * denominator;
  }
  bool operator==(const Fraction& other) const { return (*this <=> other) == 0; }
};
Fraction begin_of(const Share& share) { return {share.first - 1u, share.of}; }
Fraction end_of(const Share& share) { return {share.last, share.of}; }

// The least common denominators of all shares of the targets and of the models.
struct Denominators {
  std::uint32_t N = 1, K = 1;
};
Result<Denominators> common_denominators(std::span<const ModelGroup> groups) {
  std::uint64_t N = 1, K = 1;
  for (const ModelGroup& group : groups) {
    K = std::lcm(K, std::uint64_t{group.model_part.of});
    for (const PartPtr& part : group.parts) {
      N = std::lcm(N, std::uint64_t{part->place().part.of});
      if (std::max(N, K) > 0xffffffffu)
        return fail(ErrorCode::kInput, "the parts are shares of too many different numbers", {},
                    "search all parts with one N");
    }
  }
  return Denominators{static_cast<std::uint32_t>(N), static_cast<std::uint32_t>(K)};
}
Share scaled(const Share& share, std::uint32_t of) {
  const std::uint32_t times = of / share.of;
  return {(share.first - 1) * times + 1, share.last * times, of};
}

std::string place_name(const PartFile& part) {
  std::string name = "part " + part.place().part.text();
  if (part.place().model_part.of > 1) name += " of model part " + part.place().model_part.text();
  return name;
}

// The pieces 1 to `of` that are not in `held` (disjoint, in order).
std::vector<Share> gaps(std::span<const Share> held, std::uint32_t of) {
  std::vector<Share> missing;
  std::uint32_t covered = 0;
  for (const Share& share : held) {
    if (share.first - 1 > covered) missing.push_back({covered + 1, share.first - 1, of});
    covered = share.last;
  }
  if (covered < of) missing.push_back({covered + 1, of, of});
  return missing;
}

std::string ranges_text(std::span<const std::pair<std::uint64_t, std::uint64_t>> ranges,
                        std::string_view between) {
  std::string out;
  for (const auto& [first, last] : ranges) {
    if (!out.empty()) out += between;
    out += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  return out;
}

Status check_same_search(const PartFile& part, const PartFile& reference) {
  if (part.search() == reference.search()) return {};
  const auto difference = first_difference(part.settings_text(), reference.settings_text());
  if (!difference) return part.damaged("its settings and their digest contradict each other");
  return fail(ErrorCode::kInput,
              fmt::format("part of another search: {} is {}, but {} in {}", difference->name,
                          difference->value, difference->other, reference.path()),
              part.path(), "give the parts of one search");
}

std::unexpected<Error> held_twice(const PartFile& a, const PartFile& b, const std::string& what) {
  return fail(ErrorCode::kInput, what + " with " + a.path(), b.path(), "give one of the two");
}

}  // namespace

Result<std::vector<std::string>> find_parts(std::span<const std::string> paths) {
  constexpr std::string_view kSuffix = ".hjpart";
  std::vector<std::string> found;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      found.push_back(path);
      continue;
    }
    const std::size_t before = found.size();
    HMMJIT_ASSIGN(const std::vector<std::string> names, names_in_folder(path));
    for (const std::string& name : names) {
      if (name.size() > kSuffix.size() && name.ends_with(kSuffix))
        found.push_back((std::filesystem::path(path) / name).string());
    }
    if (found.size() == before)
      return fail(ErrorCode::kInput, "no file *.hjpart in this folder", path,
                  "give the folder of --part-file, or the files themselves");
  }
  return found;
}

Result<PartSet> PartSet::open(std::span<const std::string> paths) {
  const bool keep_open = may_keep_open(paths.size());
  std::vector<PartPtr> parts;
  for (const std::string& path : paths) {
    HMMJIT_ASSIGN(PartPtr part, PartFile::open(path, keep_open));
    if (!parts.empty()) HMMJIT_TRY(check_same_search(*part, *parts.front()));
    parts.push_back(std::move(part));
  }
  if (parts.empty()) return fail(ErrorCode::kUsage, "no part is given");
  const auto order = [](const PartPtr& part) {
    const PartPlace& p = part->place();
    return std::make_tuple(begin_of(p.model_part), end_of(p.model_part), begin_of(p.part),
                           end_of(p.part));
  };
  std::stable_sort(parts.begin(), parts.end(),
                   [&](const PartPtr& a, const PartPtr& b) { return order(a) < order(b); });

  PartSet set;
  for (PartPtr& part : parts) {
    const PartPlace& place = part->place();
    if (!set.groups_.empty()) {
      ModelGroup& group = set.groups_.back();
      const PartFile& last = *group.parts.back();
      const PartPlace& before = last.place();
      if (order(part) == order(group.parts.back())) {
        if (part->content() == last.content()) continue;
        return fail(ErrorCode::kInput,
                    "two results for " + place_name(*part) +
                        ", from damaged memory, a bug, or models that were changed; the other is " +
                        last.path(),
                    part->path(), "search this part again");
      }
      if (begin_of(place.model_part) == begin_of(before.model_part) &&
          end_of(place.model_part) == end_of(before.model_part)) {
        if (begin_of(place.part) < end_of(before.part))
          return held_twice(last, *part, place_name(*part) + " has targets in common");
        if (begin_of(place.part) == end_of(before.part) && place.first_target != before.last_target)
          return held_twice(last, *part, "the targets do not follow each other: another database");
        if (place.first_model != group.first_model || place.last_model != group.last_model)
          return fail(ErrorCode::kInput,
                      fmt::format("{} models, but {} in {}", place.last_model - place.first_model,
                                  group.last_model - group.first_model, last.path()),
                      part->path(), "search all parts with one model file");
        group.parts.push_back(std::move(part));
        continue;
      }
      if (begin_of(place.model_part) < end_of(before.model_part))
        return held_twice(last, *part, place_name(*part) + " has models in common");
    }
    set.groups_.push_back({place.first_model, place.last_model, place.model_part, {part}});
  }

  HMMJIT_ASSIGN(const auto denominators, common_denominators(set.groups_));
  const auto [N, K] = denominators;
  std::vector<Share> models_held;
  for (const ModelGroup& group : set.groups_) {
    const Share models = scaled(group.model_part, K);
    models_held.push_back(models);
    std::vector<Share> held;
    for (const PartPtr& part : group.parts) held.push_back(scaled(part->place().part, N));
    for (const Share& gap : gaps(held, N)) set.missing_.push_back({gap, models});
  }
  for (const Share& gap : gaps(models_held, K)) set.missing_.push_back({{1, N, N}, gap});
  std::ranges::stable_sort(set.missing_, {},
                           [](const MissingPart& part) { return part.model_part.first; });
  return set;
}

std::string describe_missing(std::span<const MissingPart> missing) {
  if (missing.empty()) return "no part";
  std::map<std::pair<std::uint32_t, std::uint32_t>,
           std::vector<std::pair<std::uint64_t, std::uint64_t>>>
      by_models;
  bool several = false;
  for (const MissingPart& m : missing) {
    by_models[{m.model_part.first, m.model_part.last}].emplace_back(m.part.first, m.part.last);
    several |= m.part.first != m.part.last;
  }
  std::string out;
  for (const auto& [models, ranges] : by_models) {
    if (!out.empty()) out += "; ";
    out += several || missing.size() > 1 ? "parts " : "part ";
    out += ranges_text(ranges, ", ") + fmt::format(" of {}", missing.front().part.of);
    const Share share{models.first, models.second, missing.front().model_part.of};
    if (share.of > 1) out += " of model part " + share.text();
  }
  return out;
}

std::string missing_array(std::span<const MissingPart> missing) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const MissingPart& m : missing) {
    for (std::uint64_t j = m.model_part.first; j <= m.model_part.last; ++j) {
      const std::uint64_t first = (j - 1) * m.part.of + m.part.first;
      const std::uint64_t last = (j - 1) * m.part.of + m.part.last;
      if (!ranges.empty() && ranges.back().second + 1 == first) {
        ranges.back().second = last;
      } else {
        ranges.emplace_back(first, last);
      }
    }
  }
  return ranges_text(ranges, ",");
}

Status PartSet::require_complete() const {
  if (!missing_.empty()) {
    const bool one = missing_.size() == 1 && missing_[0].part.first == missing_[0].part.last &&
                     missing_[0].model_part.first == missing_[0].model_part.last;
    return fail(ErrorCode::kInput,
                describe_missing(missing_) + (one ? " is missing" : " are missing"), {},
                one ? "run it again" : "run them again");
  }
  // The groups must cover all models of the file.
  std::uint64_t next = 0;
  for (const ModelGroup& group : groups_) {
    const PartFile& part = *group.parts.front();
    if (group.first_model != next || part.place().models != groups_.back().last_model)
      return fail(ErrorCode::kInput, "its models do not follow those of the part before",
                  part.path(), "search all parts with one model file");
    next = group.last_model;
  }
  return {};
}

Result<PartPlace> PartSet::joined_place() const {
  const auto apart = [](const PartFile& a, const PartFile& b) {
    return fail(ErrorCode::kInput, "not adjacent to " + a.path(), b.path(),
                "give parts of neighbouring targets without a gap");
  };
  HMMJIT_ASSIGN(const auto denominators, common_denominators(groups_));
  const auto [N, K] = denominators;
  const ModelGroup& front = groups_.front();
  PartPlace place = front.parts.front()->place();
  const PartPlace& last = front.parts.back()->place();
  place.part = {scaled(place.part, N).first, scaled(last.part, N).last, N};
  place.last_target = last.last_target;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const ModelGroup& group = groups_[g];
    for (std::size_t p = 1; p < group.parts.size(); ++p) {
      if (begin_of(group.parts[p]->place().part) != end_of(group.parts[p - 1]->place().part))
        return apart(*group.parts[p - 1], *group.parts[p]);
    }
    if (g == 0) continue;
    const PartFile& before = *groups_[g - 1].parts.front();
    if (begin_of(group.model_part) != end_of(groups_[g - 1].model_part) ||
        group.first_model != groups_[g - 1].last_model ||
        begin_of(group.parts.front()->place().part) !=
            begin_of(front.parts.front()->place().part) ||
        end_of(group.parts.back()->place().part) != end_of(front.parts.back()->place().part))
      return apart(before, *group.parts.front());
  }
  place.model_part = {scaled(front.model_part, K).first, scaled(groups_.back().model_part, K).last,
                      K};
  place.last_model = groups_.back().last_model;
  return place;
}

}  // namespace hmmjit::parts
