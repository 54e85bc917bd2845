! What the application {{ application }} writes as its group {{ group.name }}, and nothing of what it computes.
!
! Made by `understudy skel source`; plain Fortran for MPI and ADIOS 1.13, to be read, changed and taken away
! together with skeleton.f90, skeleton.h, skeleton.c, skeleton_fortran.c and {{ config }}. skeleton.h says what
! is measured; --help, what can be chosen when it is started.
program {{ main }}
  use, intrinsic :: iso_c_binding
  use mpi
  use skeleton
  implicit none
{% for switch in switches %}

  {{ text.comment(switch.source) }}
  logical, parameter :: {{ switch.macro }} = {{ ".true." if switch.value else ".false." }}
{% endfor %}

  ! The variables of the group.
  type group_data
{% for scalar in scalars %}
    {{ scalar.declared }}{{ scalar.note }}
{% endfor %}
{% for array in arrays %}
    {{ array.type }}, allocatable :: {{ array.id }}(:){{ array.note }}
{% endfor %}
  end type

  type(group_data), target :: data
  type(c_ptr) :: run
  integer :: answer, error, my_rank, all_ranks
  integer(c_int64_t) :: rank, ranks

  call mpi_init(error)
  call mpi_comm_rank(MPI_COMM_WORLD, my_rank, error)
  call mpi_comm_size(MPI_COMM_WORLD, all_ranks, error)
  rank = my_rank
  ranks = all_ranks
  call set_scalars()
  run = skeleton_start({{ text.quoted(program) }}, {{ text.quoted(application) }}, {{ text.quoted(config) }}, {{ test.steps }}, {{ test.iterations }}, &
                       MPI_COMM_WORLD, answer)
  if (answer /= skeleton_go) then
    call mpi_finalize(error)
    if (answer == skeleton_mistake) stop 2, quiet=.true.
    stop
  end if
{% if arrays %}
  call check_bounds()
  call make_arrays()
{% endif %}
  do while (skeleton_repetition(run))
    do while (skeleton_step(run))
      call write_step()
    end do
  end do
  call skeleton_finish(run)
  call mpi_finalize(error)

contains

  ! Sizes, offsets and all other scalars of this process.
  subroutine set_scalars()
{% for scalar in ordered %}
{% for part, value in scalar["values"] %}
    data%{{ scalar.id }}{{ part }} = {{ value }}
{% endfor %}
{% endfor %}
  end subroutine
{% if arrays %}

  ! No part may stick out of its global bounds: of each dimension the offset, the part and the whole.
  subroutine check_bounds()
{% for block in by_condition %}
{% if block.condition %}
    if ({{ block.condition }}) then
{% endif %}
{% for array in block.arrays %}
{% for bound in array.bounds %}
    {{ block.indent }}call skeleton_check_part(run, {{ text.quoted(array.name) }} // c_null_char, &
    {{ block.indent }}    {{ bound[0] }}, {{ bound[1] }}, {{ bound[2] }})
{% endfor %}
{% endfor %}
{% if block.condition %}
    end if
{% endif %}
{% endfor %}
  end subroutine

  subroutine make_arrays()
{% for block in by_condition %}
{% if block.condition %}
    if ({{ block.condition }}) then
{% endif %}
{% for array in block.arrays %}
    {{ block.indent }}allocate(data%{{ array.id }}({{ array.elements }}))
    {{ block.indent }}call skeleton_fill(run, c_loc(data%{{ array.id }}), size(data%{{ array.id }}, kind=c_size_t), &
    {{ block.indent }}    {{ array.c_enum }}, {{ array.fill }})
{% endfor %}
{% if block.condition %}
    end if
{% endif %}
{% endfor %}
  end subroutine
{% endif %}

  ! Bytes that this process writes in a step.
  integer(c_int64_t) function group_bytes() result(bytes)
    bytes = 0
{% for block in runs %}
{% if block.condition %}
    if ({{ block.condition }}) then
{% endif %}
{% for variable in block.variables %}
{% if variable.bounds is defined %}
    {{ block.indent }}bytes = bytes + {{ variable.bytes }} * size(data%{{ variable.id }}, kind=c_int64_t)
{% else %}
    {{ block.indent }}bytes = bytes + {{ variable.size }}
{% endif %}
{% endfor %}
{% if block.condition %}
    end if
{% endif %}
{% endfor %}
  end function

  subroutine write_step()
    integer(c_int64_t) :: file
    file = skeleton_open(run, {{ text.quoted(group.name) }} // c_null_char)
    call skeleton_group_size(run, file, group_bytes())
{% for block in runs %}
{% if block.condition %}
    if ({{ block.condition }}) then
{% endif %}
{% for variable in block.variables %}
    {{ block.indent }}call skeleton_write(run, file, {{ text.quoted(variable.name) }} // c_null_char, &
    {{ block.indent }}    c_loc(data%{{ variable.id }}))
{% endfor %}
{% if block.condition %}
    end if
{% endif %}
{% endfor %}
    call skeleton_close(run, file)
  end subroutine
end program
