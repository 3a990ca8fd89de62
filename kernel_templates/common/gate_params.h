// Parameters of the gate kernel, which decides after the bias filter, Viterbi and Forward which targets continue,
// and compacts them: plain structs with the same bytes on host and device.
#ifndef HMMJIT_KERNEL_GATE_PARAMS_H_
#define HMMJIT_KERNEL_GATE_PARAMS_H_

#include "common/late_params.h"

namespace hmmjit_device {

/// Bit scores between which HMMER's own arithmetic must evaluate the P-value (engine/model: ScoreBand).
/// Below `rejects` a target fails, above `passes` it passes.
struct Gate {
  float rejects, passes;
};

/// A target in the stages after MSV.
struct Candidate {
  u32 target;        ///< in sorted order
  FilterResult msv;  ///< as in its Survivor
  float filter;      ///< null or bias filter score, nats
  u32 reserved;
};
enum : u32 { kCandidateStride = sizeof(Candidate) / sizeof(u32) };

/// Zeroed by the host before a model's first launch.
struct GateCounters {
  u32 viterbi, forward, passed, open;  ///< entries of the lists
  u32 failed_bias, failed_viterbi, failed_forward;
  u32 residues[3];  ///< of the targets that each stage has processed, by GateStage
  u32 reserved[2];
};

enum GateStage : u32 { kAfterBias = 0, kAfterViterbi = 1, kAfterForward = 2 };

/// Targets that a band or guard leaves undecided are added to `open`: the CPU continues with them after MSV. The
/// counters cover the other targets only.
struct GateParams {
  DatabaseView database;
  TargetList list;  ///< survivors of MSV (stride 2), or candidates (stride kCandidateStride)
  const u32* block;          ///< [targets] the host's block; or null
  const u8* claimed;         ///< [blocks] 0: not for this device; or null
  const float* null_nats;    ///< [length classes] null score
  const LengthClass* classes;
  const s16* move;           ///< [length classes] as in WordFilterParams
  const float* bias;         ///< after the bias filter: [slots] its sums; null: filter is off
  const WordResult* words;   ///< after Viterbi: [slots]
  const float* forward;      ///< after Forward: [slots] nats
  Candidate* to_viterbi;     ///< null: no kernel, such targets are open
  Candidate* to_forward;     ///< null: no kernel or nothing to decide, such targets have passed
  u32* passed;               ///< targets for the CPU's Forward and later stages
  Survivor* open;
  GateCounters* counters;
  Gate bias_gate, skip_gate, viterbi_gate, forward_gate;
  float byte_scale, word_scale;
  float forward_guard, forward_guard_per_residue;  ///< nats
  u32 stage;
  s16 word_base;
  u8 base, tec, tbm, reserved[3];
};

static_assert(sizeof(Candidate) == 16, "device layout");
static_assert(sizeof(GateCounters) == 48, "device layout");
static_assert(sizeof(GateParams) == 240, "device layout");

}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_GATE_PARAMS_H_
