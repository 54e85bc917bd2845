#!/bin/bash
#SBATCH --job-name={{ job }}
#SBATCH --nodes={{ nodes }}
#SBATCH --ntasks={{ cores }}
#SBATCH --ntasks-per-node={{ cores_per_node }}
#SBATCH --time={{ walltime }}
{% if account %}
#SBATCH --account={{ account }}
{% endif %}
{% set starter = literal("srun") %}
{% set id = literal("${SLURM_JOB_ID}") %}
{% set start = literal("${SLURM_SUBMIT_DIR}") %}
{% include "submit/common/tests.sh" %}
