// Tests of the lockstep execution: collectives of some lanes of a warp, and misuse that it refuses.
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>

#include "lockstep/lockstep.hpp"

namespace hmmjit_lockstep {
namespace {

TEST(LockstepMasks, LanesOfAMaskGoOnWithoutTheOthers) {
  std::array<std::uint32_t, 64> got{}, votes{};
  launch(1, 64, 0, [&] {
    const unsigned thread = thread_index(), own = lane();
    if (own < 4) {
      for (std::uint32_t round = 0; round < 3; ++round) {
        got[thread] = shuffle(100 * round + own, (own + 1) % 4, 0xfu);
        votes[thread] = ballot(own == 2, 0xfu);
        sync_warp(0xfu);
      }
    }
    sync_warp();
    if (own >= 4) got[thread] = shuffle(own, 31, ~0xfu);
    sync_block();
  });
  for (unsigned t = 0; t < 64; ++t) {
    const unsigned own = t % 32;
    EXPECT_EQ(got[t], own < 4 ? 200 + (own + 1) % 4 : 31u) << t;
    EXPECT_EQ(votes[t], own < 4 ? 4u : 0u) << t;
  }
}

TEST(LockstepMasks, WhatADeviceWouldHangOrGuessAtIsRefused) {
  // A lane outside its mask; a missing lane of the mask; a value from a lane outside it.
  EXPECT_THROW(launch(1, 32, 0, [] { ballot(true, 0xfu); }), std::logic_error);
  EXPECT_THROW(launch(1, 32, 0,
                      [] {
                        if (lane() < 3) sync_warp(0xfu);
                      }),
               std::logic_error);
  EXPECT_THROW(launch(1, 32, 0,
                      [] {
                        if (lane() < 4) shuffle(1, 4, 0xfu);
                      }),
               std::logic_error);
  EXPECT_THROW(launch(1, 32, 0, [] { lane() < 16 ? ballot(true) : shuffle(1, 0); }),
               std::logic_error);
}

}  // namespace
}  // namespace hmmjit_lockstep
