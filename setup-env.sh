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
    if _und_config=$("$_und_view/understudy" doctor --paths config); then
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

. "$_und_root/python/understudy/open-mpi.sh"

case $- in
  *i*) [ -z "${BASH_VERSION-}" ] || . "$_und_root/completions/understudy.bash" ;;
esac

if [ ! -x "$_und_player/understudy-replay" ] || [ ! -x "$_und_command/understudy" ]; then
  echo "understudy: the player is not built; run \`make build\` in $_und_root" >&2
fi
unset _und_root _und_bin _und_view _und_player _und_command
