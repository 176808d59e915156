/// A communicator that is freed with its owner.
#pragma once

#include <mpi.h>

#include <utility>

namespace fluentps {

class Comm {
 public:
  Comm() = default;
  /// Takes ownership; errors are returned from then on, not fatal.
  explicit Comm(MPI_Comm handle);
  Comm(Comm&& other) noexcept : handle_(std::exchange(other.handle_, MPI_COMM_NULL)) {}
  Comm& operator=(Comm&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Comm();

  /// Collective over `parent`.
  static Comm duplicate(MPI_Comm parent);
  /// Collective over `parent`; color MPI_UNDEFINED gives an empty one.
  static Comm split(MPI_Comm parent, int color, int key);
  static Comm split_node(MPI_Comm parent);

  MPI_Comm get() const { return handle_; }
  explicit operator bool() const { return handle_ != MPI_COMM_NULL; }
  int rank() const;
  int size() const;

 private:
  MPI_Comm handle_ = MPI_COMM_NULL;
};

}  // namespace fluentps
