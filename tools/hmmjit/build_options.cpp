#include "build_options.hpp"

namespace hmmjit::tools {
namespace {

using build::AlignmentOptions;

constexpr std::string_view kWeighting = "Options controlling relative weights";
constexpr std::string_view kEffective = "Options controlling effective sequence number";
constexpr std::string_view kPrior = "Options controlling prior strategy";
constexpr std::string_view kWeightings = "--wpb,--wgsc,--wblosum,--wnone,--wgiven";
constexpr std::string_view kNumbers = "--eent,--eentexp,--eclust,--enone,--eset";

constexpr OptionSpec kFragment[] = {
    {kConstruction, "--fragthresh", "x=0.5 0<=x<=1", "if L <= x*alen, tag sequence as a fragment"}};

constexpr OptionSpec kWeightingOptions[] = {
    {kWeighting, "--wpb", "", "Henikoff position-based weights (default)", excluding(kWeightings)},
    {kWeighting, "--wgsc", "", "Gerstein/Sonnhammer/Chothia tree weights", excluding(kWeightings)},
    {kWeighting, "--wblosum", "", "Henikoff simple filter weights", excluding(kWeightings)},
    {kWeighting, "--wnone", "", "don't do any relative weighting; set all to 1",
     excluding(kWeightings)},
    {kWeighting, "--wgiven", "", "use weights as given in the alignment file",
     excluding(kWeightings)},
    {kWeighting, "--wid", "x=0.62 0<=x<=1", "for --wblosum: set identity cutoff",
     needing("--wblosum")}};

constexpr OptionSpec kEffectiveOptions[] = {
    {kEffective, "--eent", "", "adjust eff seq # to achieve relative entropy target (default)",
     excluding(kNumbers)},
    {kEffective, "--eentexp", "", "adjust eff seq # to reach rel. ent. target using exp scaling",
     excluding(kNumbers)},
    {kEffective, "--eclust", "", "eff seq # is # of single linkage clusters", excluding(kNumbers)},
    {kEffective, "--enone", "", "no effective seq # weighting: just use nseq", excluding(kNumbers)},
    {kEffective, "--eset", "x x>=0", "set eff seq # for all models to <x>", excluding(kNumbers)},
    {kEffective, "--ere", "x x>0",
     "for --eent[exp]: set minimum rel entropy/position to <x> (0.59, DNA 0.62)"},
    {kEffective, "--esigma", "x=45.0 x>0", "for --eent[exp]: set sigma param to <x>"},
    {kEffective, "--eid", "x=0.62 0<=x<=1", "for --eclust: set fractional identity cutoff to <x>",
     needing("--eclust")}};

constexpr OptionSpec kPriorOptions[] = {
    {kPrior, "--pnone", "", "don't use any prior; parameters are frequencies",
     excluding("--plaplace")},
    {kPrior, "--plaplace", "", "use a Laplace +1 prior", excluding("--pnone")}};

}  // namespace

std::span<const OptionSpec> fragment_option() { return kFragment; }
std::span<const OptionSpec> weighting_options() { return kWeightingOptions; }
std::span<const OptionSpec> effective_number_options() { return kEffectiveOptions; }
std::span<const OptionSpec> prior_options() { return kPriorOptions; }

Result<AlignmentOptions> make_alignment_options(const ParsedOptions& options) {
  using Weights = AlignmentOptions::Weights;
  using Effective = AlignmentOptions::Effective;
  using Prior = AlignmentOptions::Prior;
  AlignmentOptions made;
  made.fragment = static_cast<float>(options.real("--fragthresh"));
  if (options.is_set("--wgsc")) made.weights = Weights::kTree;
  if (options.is_set("--wblosum")) made.weights = Weights::kClusters;
  if (options.is_set("--wnone")) made.weights = Weights::kNone;
  if (options.is_set("--wgiven")) made.weights = Weights::kGiven;
  made.weight_identity = options.real("--wid");
  if (options.is_set("--eentexp")) made.effective = Effective::kEntropyPower;
  if (options.is_set("--eclust")) made.effective = Effective::kClusters;
  if (options.is_set("--enone")) made.effective = Effective::kRows;
  if (const auto value = options.given_real("--eset")) {
    made.effective = Effective::kSet;
    made.effective_set = *value;
  }
  made.relative_entropy = options.given_real("--ere");
  made.total_entropy = options.real("--esigma");
  made.effective_identity = options.real("--eid");
  if (options.is_set("--pnone")) made.prior = Prior::kNone;
  if (options.is_set("--plaplace")) made.prior = Prior::kLaplace;
  return made;
}

}  // namespace hmmjit::tools
