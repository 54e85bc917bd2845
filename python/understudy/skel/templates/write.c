/*
 * What the application {{ application }} writes as its group {{ group.name }}, and nothing of what it computes.
 *
 * Made by `understudy skel source`; plain C for MPI and ADIOS 1.13, to be read, changed and taken away
 * together with skeleton.h, skeleton.c and {{ config }}. skeleton.h says what is measured; --help, what can
 * be chosen when it is started.
 */
#include "skeleton.h"

#include <mpi.h>
#include <stdlib.h>
{% if uses_text %}
#include <string.h>
{% endif %}
{% for switch in switches %}

{{ text.comment(switch.source) }}
#ifndef {{ switch.macro }}
#define {{ switch.macro }} {{ switch.value }}
#endif
{% endfor %}

/* The variables of the group. `elements` are the sizes of the arrays. */
struct data {
{% for scalar in scalars %}
    {{ scalar.declared }};{{ scalar.note }}
{% endfor %}
{% for array in arrays %}
    {{ array.type }} *{{ array.id }};{{ array.note }}
{% endfor %}
{% if arrays %}
    struct {
{% for array in arrays %}
        size_t {{ array.id }};
{% endfor %}
    } elements;
{% endif %}
};

/* Sizes, offsets and all other scalars of this process. */
static void set_scalars(struct data *data{{ ", int64_t rank" if uses_rank }}{{ ", int64_t ranks" if uses_ranks }})
{
{% for scalar in ordered %}
{% for part, value in scalar["values"] %}
    data->{{ scalar.id }}{{ part }} = {{ value }};
{% endfor %}
{% endfor %}
}
{% if arrays %}

/* No part may stick out of its global bounds: of each dimension the offset, the part and the whole. */
static void check_bounds(const struct skeleton *run, const struct data *data)
{
{% if not uses_data_in_bounds %}
    (void)data;
{% endif %}
{% for block in by_condition %}
{% if block.condition %}
    if ({{ block.condition }}) {
{% endif %}
{% for array in block.arrays %}
{% for bound in array.bounds %}
    {{ block.indent }}skeleton_check_part(run, {{ text.quoted(array.name) }}, {{ bound[0] }}, {{ bound[1] }}, {{ bound[2] }});
{% endfor %}
{% endfor %}
{% if block.condition %}
    }
{% endif %}
{% endfor %}
}

static void make_arrays(const struct skeleton *run, struct data *data)
{
{% for block in by_condition %}
{% if block.condition %}
    if ({{ block.condition }}) {
{% endif %}
{% for array in block.arrays %}
    {{ block.indent }}data->elements.{{ array.id }} = {{ array.elements }};
    {{ block.indent }}data->{{ array.id }} = skeleton_array(run, {{ text.quoted(array.name) }}, data->elements.{{ array.id }}, sizeof *data->{{ array.id }});
    {{ block.indent }}skeleton_fill(run, data->{{ array.id }}, data->elements.{{ array.id }}, {{ array.c_enum }}, {{ array.fill }});
{% endfor %}
{% if block.condition %}
    }
{% endif %}
{% endfor %}
}

static void free_arrays(struct data *data)
{
{% for array in arrays %}
    free(data->{{ array.id }});
{% endfor %}
}
{% endif %}

/* Bytes that this process writes in a step. */
static uint64_t group_bytes(const struct data *data)
{
    uint64_t bytes = 0;
{% for block in runs %}
{% if block.condition %}
    if ({{ block.condition }}) {
{% endif %}
{% for variable in block.variables %}
{% if variable.bounds is defined %}
    {{ block.indent }}bytes += data->elements.{{ variable.id }} * sizeof *data->{{ variable.id }};
{% else %}
    {{ block.indent }}bytes += {{ variable.size }};
{% endif %}
{% endfor %}
{% if block.condition %}
    }
{% endif %}
{% endfor %}
    return bytes;
}

static void write_step(struct skeleton *run, const struct data *data)
{
    const int64_t file = skeleton_open(run, {{ text.quoted(group.name) }});
    skeleton_group_size(run, file, group_bytes(data));
{% for block in runs %}
{% if block.condition %}
    if ({{ block.condition }}) {
{% endif %}
{% for variable in block.variables %}
    {{ block.indent }}skeleton_write(run, file, {{ text.quoted(variable.name) }}, {{ "" if variable.bounds is defined or variable.text else "&" }}data->{{ variable.id }});
{% endfor %}
{% if block.condition %}
    }
{% endif %}
{% endfor %}
    skeleton_close(run, file);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    struct skeleton_settings settings = skeleton_defaults({{ text.quoted(program) }}, {{ text.quoted(application) }}, SKELETON_KIND_SKELETON,
                                                          {{ text.quoted(config) }});
    settings.steps = {{ test.steps }};
    settings.repetitions = {{ test.iterations }};
    const int answer = skeleton_options(argc, argv, MPI_COMM_WORLD, &settings);
    if (answer != SKELETON_GO) {
        MPI_Finalize();
        return answer == SKELETON_HELP ? EXIT_SUCCESS : 2;
    }
    struct data data = {0};
{% if uses_rank or uses_ranks %}
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
{% endif %}
    set_scalars(&data{{ ", rank" if uses_rank }}{{ ", ranks" if uses_ranks }});
    struct skeleton *run = skeleton_start(&settings, MPI_COMM_WORLD);
{% if arrays %}
    check_bounds(run, &data);
    make_arrays(run, &data);
{% endif %}
    while (skeleton_repetition(run))
        while (skeleton_step(run))
            write_step(run, &data);
    skeleton_finish(run);
{% if arrays %}
    free_arrays(&data);
{% endif %}
    MPI_Finalize();
    return EXIT_SUCCESS;
}
