/// Whether MPI gives the core away itself while it waits.
#pragma once

namespace fluentps {

/// Before MPI_Init: has Open MPI yield in its calls where ranks exceed cores, unless the user's settings say otherwise.
void yield_when_crowded();

/// Whether a test that finds nothing yields before it returns, so that another yield would only cost time. False where
/// MPI does not say.
bool mpi_yields();

}  // namespace fluentps
