/// Preloaded into a program under mpirun: counts what it makes of MPI and what it has not freed when it calls
/// MPI_Finalize, one line a rank on the standard error. Objects that the MPI library makes inside do not pass here.
///
///   leak_check: rank 2: communicators 9 made 0 left, windows 2 made 0 left, requests 120 made 0 left, ...
#include <mpi.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

enum Kind { kComm, kWindow, kRequest, kFile, kType, kGroup, kInfo, kOp, kErrhandler, kKinds };
constexpr std::array<const char*, kKinds> kNames = {
    "communicators", "windows", "requests", "files", "datatypes", "groups", "infos", "operations", "error handlers"};

struct Count {
  std::uint64_t made = 0;
  std::multiset<std::uint64_t> open;  ///< handles
};
std::array<Count, kKinds> counts;
std::mutex mutex;

template <typename Handle>
std::uint64_t key(Handle handle) {
  std::uint64_t result = 0;
  static_assert(sizeof(handle) <= sizeof(result));
  std::memcpy(&result, &handle, sizeof(handle));
  return result;
}

template <typename Handle>
int made(int code, Kind kind, const Handle* handle, Handle null) {
  if (code != MPI_SUCCESS || *handle == null) return code;
  const std::lock_guard lock(mutex);
  ++counts[kind].made;
  counts[kind].open.insert(key(*handle));
  return code;
}

void forget(Kind kind, std::uint64_t handle) {
  const std::lock_guard lock(mutex);
  const auto found = counts[kind].open.find(handle);
  if (found != counts[kind].open.end()) counts[kind].open.erase(found);
}

/// A call that may end requests: those that are null afterwards have ended.
template <typename Call>
int ending(int count, MPI_Request* requests, const Call& call) {
  const std::vector<MPI_Request> before(requests, requests + count);
  const int code = call();
  for (int k = 0; k < count; ++k)
    if (before[static_cast<std::size_t>(k)] != MPI_REQUEST_NULL && requests[k] == MPI_REQUEST_NULL)
      forget(kRequest, key(before[static_cast<std::size_t>(k)]));
  return code;
}

}  // namespace

#define MAKES(kind, null, handle, name, parameters, arguments) \
  extern "C" int MPI_##name parameters { return made(PMPI_##name arguments, kind, handle, null); }
#define FREES(kind, type, name)                    \
  extern "C" int MPI_##name(type* handle) {        \
    const auto before = key(*handle);              \
    const int code = PMPI_##name(handle);          \
    if (code == MPI_SUCCESS) forget(kind, before); \
    return code;                                   \
  }
#define COMM(name, parameters, arguments) MAKES(kComm, MPI_COMM_NULL, made_comm, name, parameters, arguments)
#define WINDOW(name, parameters, arguments) MAKES(kWindow, MPI_WIN_NULL, window, name, parameters, arguments)
#define REQUEST(name, parameters, arguments) MAKES(kRequest, MPI_REQUEST_NULL, request, name, parameters, arguments)
#define TYPE(name, parameters, arguments) MAKES(kType, MPI_DATATYPE_NULL, made_type, name, parameters, arguments)
#define GROUP(name, parameters, arguments) MAKES(kGroup, MPI_GROUP_NULL, group, name, parameters, arguments)

COMM(Comm_dup, (MPI_Comm c, MPI_Comm* made_comm), (c, made_comm))
COMM(Comm_dup_with_info, (MPI_Comm c, MPI_Info i, MPI_Comm* made_comm), (c, i, made_comm))
COMM(Comm_split, (MPI_Comm c, int color, int k, MPI_Comm* made_comm), (c, color, k, made_comm))
COMM(Comm_split_type, (MPI_Comm c, int t, int k, MPI_Info i, MPI_Comm* made_comm), (c, t, k, i, made_comm))
COMM(Comm_create, (MPI_Comm c, MPI_Group g, MPI_Comm* made_comm), (c, g, made_comm))
COMM(Comm_create_group, (MPI_Comm c, MPI_Group g, int tag, MPI_Comm* made_comm), (c, g, tag, made_comm))
FREES(kComm, MPI_Comm, Comm_free)
FREES(kComm, MPI_Comm, Comm_disconnect)

WINDOW(Win_allocate, (MPI_Aint s, int u, MPI_Info i, MPI_Comm c, void* b, MPI_Win* window), (s, u, i, c, b, window))
WINDOW(Win_allocate_shared, (MPI_Aint s, int u, MPI_Info i, MPI_Comm c, void* b, MPI_Win* window),
       (s, u, i, c, b, window))
WINDOW(Win_create, (void* b, MPI_Aint s, int u, MPI_Info i, MPI_Comm c, MPI_Win* window), (b, s, u, i, c, window))
WINDOW(Win_create_dynamic, (MPI_Info i, MPI_Comm c, MPI_Win* window), (i, c, window))
FREES(kWindow, MPI_Win, Win_free)

#define SEND(name)                                                                                         \
  REQUEST(name, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* request), \
          (b, n, t, to, tag, c, request))
SEND(Isend)
SEND(Issend)
SEND(Ibsend)
SEND(Irsend)
SEND(Send_init)
SEND(Ssend_init)
REQUEST(Irecv, (void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* request),
        (b, n, t, from, tag, c, request))
REQUEST(Recv_init, (void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* request),
        (b, n, t, from, tag, c, request))
REQUEST(Ibarrier, (MPI_Comm c, MPI_Request* request), (c, request))
REQUEST(Ibcast, (void* b, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request* request),
        (b, n, t, root, c, request))
REQUEST(Iallreduce, (const void* b, void* r, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request* request),
        (b, r, n, t, o, c, request))
REQUEST(Ireduce, (const void* b, void* r, int n, MPI_Datatype t, MPI_Op o, int root, MPI_Comm c, MPI_Request* request),
        (b, r, n, t, o, root, c, request))
REQUEST(Rput,
        (const void* b, int n, MPI_Datatype t, int r, MPI_Aint d, int m, MPI_Datatype u, MPI_Win w,
         MPI_Request* request),
        (b, n, t, r, d, m, u, w, request))
REQUEST(Rget,
        (void* b, int n, MPI_Datatype t, int r, MPI_Aint d, int m, MPI_Datatype u, MPI_Win w, MPI_Request* request),
        (b, n, t, r, d, m, u, w, request))
FREES(kRequest, MPI_Request, Request_free)

extern "C" int MPI_Wait(MPI_Request* r, MPI_Status* s) {
  return ending(1, r, [&] { return PMPI_Wait(r, s); });
}
extern "C" int MPI_Test(MPI_Request* r, int* done, MPI_Status* s) {
  return ending(1, r, [&] { return PMPI_Test(r, done, s); });
}
extern "C" int MPI_Waitall(int n, MPI_Request* r, MPI_Status* s) {
  return ending(n, r, [&] { return PMPI_Waitall(n, r, s); });
}
extern "C" int MPI_Testall(int n, MPI_Request* r, int* done, MPI_Status* s) {
  return ending(n, r, [&] { return PMPI_Testall(n, r, done, s); });
}
extern "C" int MPI_Waitany(int n, MPI_Request* r, int* which, MPI_Status* s) {
  return ending(n, r, [&] { return PMPI_Waitany(n, r, which, s); });
}
extern "C" int MPI_Testany(int n, MPI_Request* r, int* which, int* done, MPI_Status* s) {
  return ending(n, r, [&] { return PMPI_Testany(n, r, which, done, s); });
}
extern "C" int MPI_Waitsome(int n, MPI_Request* r, int* ended, int* which, MPI_Status* s) {
  return ending(n, r, [&] { return PMPI_Waitsome(n, r, ended, which, s); });
}
extern "C" int MPI_Testsome(int n, MPI_Request* r, int* ended, int* which, MPI_Status* s) {
  return ending(n, r, [&] { return PMPI_Testsome(n, r, ended, which, s); });
}

MAKES(kFile, MPI_FILE_NULL, file, File_open, (MPI_Comm c, const char* n, int m, MPI_Info i, MPI_File* file),
      (c, n, m, i, file))
FREES(kFile, MPI_File, File_close)

TYPE(Type_contiguous, (int n, MPI_Datatype t, MPI_Datatype* made_type), (n, t, made_type))
TYPE(Type_vector, (int n, int l, int s, MPI_Datatype t, MPI_Datatype* made_type), (n, l, s, t, made_type))
TYPE(Type_indexed, (int n, const int* l, const int* d, MPI_Datatype t, MPI_Datatype* made_type),
     (n, l, d, t, made_type))
TYPE(Type_create_struct, (int n, const int* l, const MPI_Aint* d, const MPI_Datatype* t, MPI_Datatype* made_type),
     (n, l, d, t, made_type))
TYPE(Type_dup, (MPI_Datatype t, MPI_Datatype* made_type), (t, made_type))
FREES(kType, MPI_Datatype, Type_free)

GROUP(Comm_group, (MPI_Comm c, MPI_Group* group), (c, group))
GROUP(Win_get_group, (MPI_Win w, MPI_Group* group), (w, group))
GROUP(Group_incl, (MPI_Group g, int n, const int* r, MPI_Group* group), (g, n, r, group))
GROUP(Group_excl, (MPI_Group g, int n, const int* r, MPI_Group* group), (g, n, r, group))
FREES(kGroup, MPI_Group, Group_free)

MAKES(kInfo, MPI_INFO_NULL, info, Info_create, (MPI_Info * info), (info))
MAKES(kInfo, MPI_INFO_NULL, info, Info_dup, (MPI_Info i, MPI_Info* info), (i, info))
FREES(kInfo, MPI_Info, Info_free)
MAKES(kOp, MPI_OP_NULL, op, Op_create, (MPI_User_function * f, int c, MPI_Op* op), (f, c, op))
FREES(kOp, MPI_Op, Op_free)
MAKES(kErrhandler, MPI_ERRHANDLER_NULL, handler, Comm_create_errhandler,
      (MPI_Comm_errhandler_function * f, MPI_Errhandler* handler), (f, handler))
MAKES(kErrhandler, MPI_ERRHANDLER_NULL, handler, Win_create_errhandler,
      (MPI_Win_errhandler_function * f, MPI_Errhandler* handler), (f, handler))
FREES(kErrhandler, MPI_Errhandler, Errhandler_free)

extern "C" int MPI_Finalize() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  auto line = "leak_check: rank " + std::to_string(rank) + ":";
  for (int kind = 0; kind < kKinds; ++kind) {
    const auto& count = counts[static_cast<std::size_t>(kind)];
    line += std::string(kind > 0 ? "," : "") + " " + kNames[static_cast<std::size_t>(kind)] + " " +
            std::to_string(count.made) + " made " + std::to_string(count.open.size()) + " left";
  }
  std::fprintf(stderr, "%s\n", line.c_str());
  return PMPI_Finalize();
}
