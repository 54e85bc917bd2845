#!/bin/bash
#PBS -N {{ job[:15] }}
#PBS -l select={{ nodes }}:ncpus={{ cores_per_node }}:mpiprocs={{ cores_per_node }}
#PBS -l walltime={{ walltime }}
#PBS -j oe
{% if account %}
#PBS -A {{ account }}
{% endif %}
{% set launcher = launcher or "mpirun -n " ~ cores %}
{% set id = "${PBS_JOBID%%.*}" %}
{% set start = "${PBS_O_WORKDIR}" %}
{% include "submit/common/tests.sh" %}
