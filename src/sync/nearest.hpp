/// nearest_name(name, valid): what a mistyped name was meant to be. The one implementation serves all small specs.
#pragma once

#include "shard/spec.hpp"  // IWYU pragma: export
