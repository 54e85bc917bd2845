#!/usr/bin/env bash
# Set up what `make run` or `make test` needs. Repeated calls take little time.
#
#   ./setup.sh run     system packages, .venv with the package understudy, the player in build/bin
#   ./setup.sh test    the same, and what the tests and the linters need
#   ./setup.sh rehearse-slurm, rehearse-ceph, rehearse-slow    the same, and what these rehearsals need (see docs/how-to/rehearse.md)
#   ./setup.sh image   the same as run, and what a container image is made with
#
# System packages come from apt where it exists (as root or through sudo); elsewhere the compilers and libraries
# of the system are used, and missing ones are listed. PYTHON=... chooses the interpreter. Logs: build/setup-*.log
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
PATH=${PATH//"$PWD/.venv/bin:"/}  # the interpreter that .venv is made with is another one
unset MAKEFLAGS MFLAGS MAKELEVEL  # a `make -j` above has no job server for the builds below

say() { printf 'understudy: %s\n' "$*" >&2; }
die() { say "$@"; exit 1; }

# logged NAME WHAT COMMAND...: says what it does, keeps the output in build/setup-NAME.log, shows its end on failure.
logged() {
  local log=build/setup-$1.log
  say "$2"
  shift 2
  "$@" >"$log" 2>&1 </dev/null || { tail -n 30 "$log" >&2; die "failed: $* (full output: $log)"; }
}

# The first Python that is new enough and can make a virtual environment; fails where there is none.
find_python() {
  local python
  for python in ${PYTHON:-python3 /usr/bin/python3 python3.13 python3.12 python3.11 python3.10}; do
    if "$python" -c 'import sys, venv, ensurepip; assert sys.version_info >= (3, 10)' 2>/dev/null; then
      command -v "$python"
      return 0
    fi
  done
  return 1
}

# missing NEED...: the rows "need|what|packages" of requirements-debian.txt whose command fails.
missing() {
  local need what packages there
  while IFS='|' read -r need what packages there; do
    need=${need// /}
    [[ " $* " == *" $need "* ]] || continue
    (eval "$there") >/dev/null 2>&1 </dev/null ||
      printf '%s|%s|%s\n' "$need" "$(xargs <<<"$what")" "$(xargs <<<"$packages")"
  done < <(grep -v '^#' requirements-debian.txt)
}

# What apt does not have, of "need|what|packages" rows on stdin that can be done without, is left out from then on.
known_to_apt() {
  local need what packages package known
  while IFS='|' read -r need what packages; do
    known=yes
    for package in $packages; do  # one that others only recommend is shown without a word
      [ -n "$(apt-cache show --no-all-versions "$package" 2>/dev/null)" ] || known=no
    done
    if [[ $need != more* || $known = yes ]]; then
      printf '%s|%s|%s\n' "$need" "$what" "$packages"
    else
      printf '%s\n' "$what" >>build/understudy.without
    fi
  done
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# May this user install packages? Asks for sudo's password only where somebody can give it.
may_install() {
  command -v apt-get >/dev/null || return 1
  [ "$(id -u)" != 0 ] || return 0
  command -v sudo >/dev/null || return 1
  sudo -n true 2>/dev/null || { [ -t 0 ] && sudo true; }
}

system_packages() {
  local rows packages must
  rows=$(missing "$@")
  [ -n "$rows" ] || return 0
  touch build/understudy.without
  if [ -n "$(cut -d'|' -f2 <<<"$rows" | grep -vxFf build/understudy.without || true)" ] && may_install; then
    logged apt-update "updating the package lists" as_root apt-get -o DPkg::Lock::Timeout=300 update
    : >build/understudy.without
    packages=$(known_to_apt <<<"$rows" | cut -d'|' -f3 | xargs)
    # shellcheck disable=SC2086  # names, one word each
    [ -z "$packages" ] || logged apt-install "installing the packages $packages" as_root env \
      DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $packages
    rows=$(missing "$@")
  fi
  must=$(grep -v '^more' <<<"$rows" || true)
  if [ -n "$must" ]; then
    die "missing: $(cut -d'|' -f2 <<<"$must" | paste -sd, | sed 's/,/, /g'). Load the modules or the Spack" \
      "environment that provide it, or on Debian and Ubuntu:" \
      "apt-get install --no-install-recommends $(cut -d'|' -f3 <<<"$must" | xargs)"
  fi
  [ -z "$rows" ] || say "continuing without: $(cut -d'|' -f2 <<<"$rows" | paste -sd, | sed 's/,/, /g')"
}

# requirements_key FILE: changes with everything that the installed packages depend on.
requirements_key() {
  { printf '%s\n' "$venv_key"; cat pyproject.toml requirements.txt "$1"; } | sha256sum
}

python_packages() {
  local requirements=$1 python venv_key
  python=$(find_python)
  venv_key="$PWD $("$python" -VV)"
  [ "$(cat .venv/understudy.requirements 2>/dev/null)" = "$(requirements_key requirements-test.txt)" ] && return 0
  [ "$(cat .venv/understudy.requirements 2>/dev/null)" = "$(requirements_key "$requirements")" ] && return 0
  if [ "$(cat .venv/understudy.python 2>/dev/null)" != "$venv_key" ]; then
    [ ! -L .venv ] || die ".venv is a link to the environment of another checkout, which would be emptied; remove it"
    logged venv "creating .venv with $("$python" -V)" "$python" -m venv --clear .venv
  fi
  logged pip "installing the Python packages of $requirements into .venv" \
    .venv/bin/python -m pip install --disable-pip-version-check --no-input --require-hashes -r "$requirements"
  logged pip-understudy "installing the package understudy (editable)" \
    .venv/bin/python -m pip install --disable-pip-version-check --no-input --no-deps --no-build-isolation -e .
  printf '%s\n' "$venv_key" >.venv/understudy.python
  requirements_key "$requirements" >.venv/understudy.requirements
}

# Changes with the compiler, the libraries and the place that CMake's cache was made for.
build_key() (
  exec 2>&1
  printf '%s\n' "$PWD $*" "${CC-} ${CFLAGS-} ${LDFLAGS-} ${HDF5_ROOT-} ${ADIOS_ROOT-} ${ADIOS2_ROOT-} ${CMAKE_PREFIX_PATH-} ${PKG_CONFIG_PATH-}"
  command -v cmake mpicc mpicc.mpich h5pcc || true
  "${CC:-cc}" --version || true
  mpicc -show || true
  mpicc.mpich -show || true
  for library in jansson cmocka hdf5-openmpi hdf5-mpich fuse3 liburing; do pkg-config --modversion "$library" || true; done
  ls /usr/lib/*/adios/openmpi/libadios.a || true
  readlink /usr/lib/*/libadios2_mpi_c_mpi.so || true
)

# player DIRECTORY NAME OPTIONS...: configures where something has changed, and builds.
player() {
  local directory=$1 name=$2
  shift 2
  set -- "$@" -DUND_PYTHON3="$PWD/.venv/bin/python"  # names the cases of the tests, with the packages of .venv
  mkdir -p "$directory"
  if [ "$(cat "$directory/understudy.key" 2>/dev/null)" != "$(build_key "$@")" ]; then
    rm -f "$directory/CMakeCache.txt" "$directory/understudy.key"
    logged "cmake$name" "configuring $directory" cmake -S . -B "$directory" "$@"
    build_key "$@" >"$directory/understudy.key"
  fi
  logged "build$name" "building the player in $directory" \
    cmake --build "$directory" -j "$(getconf _NPROCESSORS_ONLN)"
}

# The tests also run the player with MPICH, of whose family most MPIs of large systems are.
player_with_mpich() {
  if command -v mpicc.mpich mpiexec.hydra >/dev/null; then
    player build/mpich -mpich -DMPI_C_COMPILER="$(command -v mpicc.mpich)" \
      -DMPIEXEC_EXECUTABLE="$(command -v mpiexec.hydra)" -DUND_ADIOS=OFF -DUND_ADIOS2=OFF
  fi
}

mkdir -p build
if command -v flock >/dev/null; then  # two calls at once in one checkout wait for each other
  exec 9>build/.lock
  flock 9
fi
case ${1-} in
  run) needs="run more" requirements=requirements.txt ;;
  test) needs="run more test more-test" requirements=requirements-test.txt ;;
  rehearse-slurm | rehearse-ceph | rehearse-slow) needs="run more test more-test more-$1" requirements=requirements-test.txt ;;
  image) needs="run more image" requirements=requirements.txt ;;
  *) die "setup.sh: expected 'run', 'test', 'image', 'rehearse-slurm', 'rehearse-ceph' or 'rehearse-slow'," \
    "got '${1-}'" ;;
esac
# shellcheck disable=SC2086  # words
system_packages $needs
python_packages "$requirements"
player build ""
case $1 in run | image) ;; *) player_with_mpich ;; esac
