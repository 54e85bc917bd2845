# Atoms on a lattice, and the run input file.
set -e
awk 'BEGIN {
  n = 20; a = 0.364
  printf "Argon\n%d\n", n * n * n
  for (i = 0; i < n; i++) for (j = 0; j < n; j++) for (k = 0; k < n; k++) {
    m++; printf "%5d%-5s%5s%5d%8.3f%8.3f%8.3f\n", m, "AR", "AR", m, i * a, j * a, k * a
  }
  printf "%10.5f%10.5f%10.5f\n", n * a, n * a, n * a
}' >conf.gro
gmx_mpi grompp -f run.mdp -c conf.gro -p topol.top -o topol.tpr -maxwarn 5
