// The kernel templates, embedded into the program when it is configured.
#pragma once

namespace mrf {
extern const char* const kParametersText;
extern const char* const kUpdateText;
extern const char* const kStatisticsText;
}  // namespace mrf
