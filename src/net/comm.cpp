#include "net/comm.hpp"

#include <exception>

#include "net/mpi_error.hpp"

namespace fluentps {

Comm::Comm(MPI_Comm handle) : handle_(handle) {
  if (handle_ != MPI_COMM_NULL) FLUENTPS_MPI(MPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN));
}

Comm::~Comm() {
  // Freeing is collective: while an exception unwinds on one rank the others are elsewhere.
  if (handle_ != MPI_COMM_NULL && std::uncaught_exceptions() == 0) MPI_Comm_free(&handle_);
}

Comm Comm::duplicate(MPI_Comm parent) {
  MPI_Comm handle = MPI_COMM_NULL;
  FLUENTPS_MPI(MPI_Comm_dup(parent, &handle));
  return Comm(handle);
}

Comm Comm::split(MPI_Comm parent, int color, int key) {
  MPI_Comm handle = MPI_COMM_NULL;
  FLUENTPS_MPI(MPI_Comm_split(parent, color, key, &handle));
  return Comm(handle);
}

Comm Comm::split_node(MPI_Comm parent) {
  MPI_Comm handle = MPI_COMM_NULL;
  FLUENTPS_MPI(MPI_Comm_split_type(parent, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &handle));
  return Comm(handle);
}

int Comm::rank() const {
  int rank = 0;
  FLUENTPS_MPI(MPI_Comm_rank(handle_, &rank));
  return rank;
}

int Comm::size() const {
  int size = 0;
  FLUENTPS_MPI(MPI_Comm_size(handle_, &size));
  return size;
}

}  // namespace fluentps
