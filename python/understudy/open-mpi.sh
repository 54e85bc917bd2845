# What Open MPI (4 and 5) needs on a host that is no cluster; read by setup-env.sh and by jobs of this host.
# What is set already stays as it is.

# Ranks that wait for each other on one core must give it away, or a barrier takes milliseconds.
export OMPI_MCA_mpi_yield_when_idle="${OMPI_MCA_mpi_yield_when_idle-1}"
# More ranks than cores: the first for Open MPI 4, the second for Open MPI 5.
export OMPI_MCA_rmaps_base_oversubscribe="${OMPI_MCA_rmaps_base_oversubscribe-1}"
export PRTE_MCA_rmaps_default_mapping_policy="${PRTE_MCA_rmaps_default_mapping_policy-:oversubscribe}"
# No words about network cards that are not there, nor (Open MPI 5) about IPv6 addresses that netlink finds no way to.
export OMPI_MCA_btl_base_warn_component_unused="${OMPI_MCA_btl_base_warn_component_unused-0}"
export OMPI_MCA_reachable="${OMPI_MCA_reachable-weighted}"
# Open MPI 4 does not start without a remote shell, even where no other node is to be reached.
if ! command -v ssh >/dev/null && ! command -v rsh >/dev/null; then
  export OMPI_MCA_plm_rsh_agent="${OMPI_MCA_plm_rsh_agent-sh}"
fi
# Only a user who is root already may start programs as root.
if [ "$(id -u)" = 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT="${OMPI_ALLOW_RUN_AS_ROOT-1}"
  export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="${OMPI_ALLOW_RUN_AS_ROOT_CONFIRM-1}"
fi
