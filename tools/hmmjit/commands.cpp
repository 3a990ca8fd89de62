#include "hmmjit/command.hpp"

namespace hmmjit::tools {
namespace {

constexpr Command kCommands[] = {
    {"search", "search profile(s) against sequences, as hmmsearch does", command_search},
    {"phmmer", "search protein sequence(s) against sequences, as phmmer does", command_phmmer},
    {"jackhmmer", "search protein sequence(s) in rounds, as jackhmmer does", command_jackhmmer},
    {"scan", "search sequence(s) against profiles, as hmmscan does", command_scan},
    {"build", "make profile(s) from multiple alignments, as hmmbuild does", command_build},
    {"merge", "put the parts of a search together: the outputs of the whole", command_merge},
    {"part", "describe, check and count the parts of a search", command_part},
    {"db", "make, describe and check databases of targets; print sequences by name", command_db},
    {"report", "turn a result into one HTML page with domain architectures", command_report},
    {"plan", "show which kernel would score each model on a device, and why", command_plan},
    {"cache", "inspect, fill and move the cache of compiled kernels", command_cache},
    {"bench", "check and time the filter kernels on the GPU of this machine", command_bench},
    {"tune", "measure the planner's candidates on this GPU and keep the fastest", command_tune},
    {"doctor", "check driver, compiler and cache, with a remedy for each problem", command_doctor},
    {"completions", "print the completion script of a shell", command_completions},
    {"man", "print a manual page", command_man},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace hmmjit::tools
