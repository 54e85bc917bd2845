# Source this in bash or zsh: `source setup-env.sh` puts understudy, its player and ReFrame on PATH, and lets
# Open MPI (4 and 5) start more ranks than there are cores, as root too. What is set already stays as it is.

if [ -n "${ZSH_VERSION-}" ]; then
  _und_root=${(%):-%x}
else
  _und_root=${BASH_SOURCE[0]}
fi
_und_root=$(unset CDPATH; cd "$(dirname "$_und_root")" && pwd)

# An activated Spack environment comes first, with what it has.
_und_view=${SPACK_ENV-}${SPACK_ENV:+/.spack-env/view/bin}
_und_player=$_und_root/build/bin
if [ -n "$_und_view" ] && [ -x "$_und_view/understudy-replay" ]; then
  _und_player=$_und_view
fi
_und_command=$_und_root/.venv/bin
if [ -n "$_und_view" ] && [ -x "$_und_view/understudy" ]; then
  _und_command=$_und_view
  if [ -z "${RFM_CONFIG_FILES+set}" ]; then
    if _und_config=$("$_und_view/understudy" where config); then
      export RFM_CONFIG_FILES=$_und_config
    else
      echo "understudy: $_und_view/understudy does not run; RFM_CONFIG_FILES is that of the checkout" >&2
    fi
    unset _und_config
  fi
fi
for _und_bin in "$_und_player" "$_und_command"; do
  case ":$PATH:" in
    *":$_und_bin:"*) ;;
    *) PATH=$_und_bin:$PATH ;;
  esac
done
export PATH
export RFM_CONFIG_FILES="${RFM_CONFIG_FILES-$_und_root/configs/settings.py}"

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
if [ "$(id -u)" = 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT="${OMPI_ALLOW_RUN_AS_ROOT-1}"
  export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="${OMPI_ALLOW_RUN_AS_ROOT_CONFIRM-1}"
fi

if [ ! -x "$_und_player/understudy-replay" ] || [ ! -x "$_und_command/understudy" ]; then
  echo "understudy: the player is not built; run \`make build\` in $_und_root" >&2
fi
unset _und_root _und_bin _und_view _und_player _und_command
