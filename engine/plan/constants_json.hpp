// Constants of a kernel where plans and measurements are written as JSON.
#pragma once

#include "core/json_object.hpp"
#include "plan/kernel_variant.hpp"

namespace hmmjit::plan {

/// The member "constants": an object of all of them, in their order.
inline void write_constants(JsonObject& json, const Constants& constants) {
  JsonObject object = json.object("constants");
  for (const auto& [name, value] : constants.list()) object.number(name, value);
  object.close();
}

}  // namespace hmmjit::plan
