/// Leaves one of each thing of MPI behind, on every rank: what tests/system/leak_check.cpp must find. With an argument
/// it frees all.
#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm none = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &none);  // makes nothing
  MPI_Win window = MPI_WIN_NULL;
  void* base = nullptr;
  MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  int received = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&received, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &request);
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(2, MPI_INT, &type);
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  if (argc > 1) {
    MPI_Comm_free(&comm);
    MPI_Win_free(&window);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
    MPI_Group_free(&group);
    MPI_Info_free(&info);
  }
  MPI_Finalize();
}
