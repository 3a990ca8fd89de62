// libhmmjit: profile-HMM search with hmmsearch's results, and the engine that makes its kernels.
//
//   #include <hmmjit/hmmjit.hpp>
//   auto results = hmmjit::search(hmmjit::Models::load("m.hmm"),
//   hmmjit::Targets::from_file("t.fa"));
//
// Rules of the whole interface. No call prints, exits, changes signal handlers, locale or working
// directory, or keeps state that two users in one process could trip over. Errors are exceptions of
// type hmmjit::Error. Objects are handles unless they are plain structs: copying is cheap. Unless a
// declaration says otherwise, const members may be called from several threads at once, and two
// objects never share anything that needs the host's locking. Host functions (callbacks, visitors,
// catalogue entries) run with the host's floating-point mode, and their exceptions pass unchanged.
#pragma once

#include "hmmjit/build.hpp"      // IWYU pragma: export
#include "hmmjit/cache.hpp"      // IWYU pragma: export
#include "hmmjit/database.hpp"   // IWYU pragma: export
#include "hmmjit/device.hpp"     // IWYU pragma: export
#include "hmmjit/engine.hpp"     // IWYU pragma: export
#include "hmmjit/error.hpp"      // IWYU pragma: export
#include "hmmjit/iteration.hpp"  // IWYU pragma: export
#include "hmmjit/models.hpp"     // IWYU pragma: export
#include "hmmjit/nhmmer.hpp"     // IWYU pragma: export
#include "hmmjit/parts.hpp"      // IWYU pragma: export
#include "hmmjit/report.hpp"     // IWYU pragma: export
#include "hmmjit/results.hpp"    // IWYU pragma: export
#include "hmmjit/search.hpp"     // IWYU pragma: export
#include "hmmjit/targets.hpp"    // IWYU pragma: export
#include "hmmjit/version.hpp"    // IWYU pragma: export
