/// Everything that someone who links the library needs.
#pragma once

#include "fluentps/clock.hpp"
#include "fluentps/error.hpp"
#include "fluentps/mpi.hpp"
#include "fluentps/session.hpp"
#include "fluentps/sync_model.hpp"
#include "fluentps/types.hpp"
#include "fluentps/worker.hpp"
