#!/bin/bash
#PBS -N NAME
#PBS -o rfm_job.out
#PBS -e rfm_job.err
#PBS -l walltime=0:10:1
#PBS -l nodes=5:ppn=16
#PBS -r n
cd STAGE
type module >/dev/null 2>&1 || for init in "${MODULESHOME:-/opt/modules/default}/init/bash" /etc/profile.d/{modules,lmod}.sh; do if [ -r "$init" ]; then . "$init"; break; fi; done
set -e
module swap PrgEnv-pgi PrgEnv-gnu
module swap gcc gcc/4.9.3
module swap cray-mpich cray-mpich/7.5.2
module load cray-hdf5-parallel/1.10.0.1
set -e
dir=$(mktemp -d /lustre/atlas1/scratch/"${USER:?is not set}"/understudy.XXXXXX)
{ date -u +%Y-%m-%dT%H:%M:%SZ; printf "%s\n" "$dir"; } >run-directory
trap 'echo $? >exit-status; understudy-storage "$dir" >storage-after.json || true; rm -rf "$dir"' EXIT
understudy-storage "$dir" >storage-before.json
aprun -n 80 -N 16 grep ^MemTotal: /proc/meminfo | grep ^MemTotal: | sort -k 2nr | head -n 1 >node-memory || true
aprun -n 80 -N 16 understudy-replay -w workload.json -a posix --stripe-count 80 -i 1 --time-scale 0.02381 --watchdog 300 --verify -o "$dir" -O result.json
