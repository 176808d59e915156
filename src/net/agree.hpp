/// One rank's failure is everyone's: a step that any rank may fail, agreed on by all.
#pragma once

#include <mpi.h>

#include <functional>
#include <string>

namespace fluentps {

/// Collective over `comm`. Runs `step` on every rank; when it throws on any, all ranks throw: the lowest failing rank's
/// text, as UsageError where that was one, else as RunError. On the other ranks the text names the failing rank.
void agree(MPI_Comm comm, const std::function<void()>& step);

/// Collective: root's text on every rank.
std::string broadcast(MPI_Comm comm, std::string text, int root);

/// Collective: throws UsageError on all ranks when the lines of `text` (`name = value` each) differ from rank 0's on
/// any rank; names the first line that does.
void require_same(MPI_Comm comm, const std::string& text);

}  // namespace fluentps
