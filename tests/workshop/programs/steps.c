/* Several dumps in one HDF5 file: steps open (it stays open), steps reopen (opened for each). */
#include "workshop.h"
#include <hdf5.h>

enum { COUNT = 64 << 10, STEPS = 8 };

int main(int argc, char **argv) {
  const int rank = start(&argc, &argv);
  int ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int reopen = strcmp(argv[1], "reopen") == 0;
  const hid_t access_list = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_fapl_mpio(access_list, MPI_COMM_WORLD, MPI_INFO_NULL);
  H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
  const hsize_t all = (hsize_t)(ranks * COUNT), first = (hsize_t)(rank * COUNT), own = COUNT;
  const hid_t whole = H5Screate_simple(1, &all, NULL), part = H5Screate_simple(1, &own, NULL);
  H5Sselect_hyperslab(whole, H5S_SELECT_SET, &first, NULL, &own, NULL);
  hid_t file = H5I_INVALID_HID;
  for (int k = 0; k < STEPS; k++) {
    wait_until(0.3 * k);
    MPI_Barrier(MPI_COMM_WORLD);
    mark("out");
    if (k == 0) file = H5Fcreate("out.h5", H5F_ACC_TRUNC, H5P_DEFAULT, access_list);
    else if (reopen) file = H5Fopen("out.h5", H5F_ACC_RDWR, access_list);
    CHECK(file >= 0);
    char name[32];
    snprintf(name, sizeof name, "step-%d", k);
    const hid_t set = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, whole, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(H5Dwrite(set, H5T_NATIVE_DOUBLE, part, whole, transfer, data) >= 0);
    H5Dclose(set);
    if (reopen || k + 1 == STEPS) H5Fclose(file);
    else H5Fflush(file, H5F_SCOPE_GLOBAL);
    mark("");
  }
  wait_until(0.3 * STEPS);
  MPI_Finalize();
  return 0;
}
