#!/bin/bash
#PBS -N {{ short_job }}
#PBS -l nodes={{ nodes }}:ppn={{ cores_per_node }}
#PBS -l walltime={{ walltime }}
#PBS -j oe
{% if account %}
#PBS -A {{ account }}
{% endif %}
{% set starter = literal("mpirun") %}
{% set id = literal("${PBS_JOBID%%.*}") %}
{% set start = literal("${PBS_O_WORKDIR}") %}
{% include "submit/common/tests.sh" %}
