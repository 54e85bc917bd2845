! The functions of skeleton.h for Fortran 2003. Texts end with c_null_char; skeleton.h says what each does.
module skeleton
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: skeleton_start, skeleton_repetition, skeleton_step, skeleton_open, skeleton_group_size, &
            skeleton_write, skeleton_close, skeleton_finish, skeleton_fill, skeleton_check_block, skeleton_check_capacity, &
            skeleton_grid, skeleton_coordinate, skeleton_of_rank

  integer, parameter, public :: skeleton_go = 0, skeleton_help = 1, skeleton_usage_error = 2
  enum, bind(c)
    enumerator :: skeleton_fill_rank, skeleton_fill_index, skeleton_fill_random, skeleton_fill_zero
  end enum
  public :: skeleton_fill_rank, skeleton_fill_index, skeleton_fill_random, skeleton_fill_zero
  enum, bind(c)
    enumerator :: skeleton_i8, skeleton_i16, skeleton_i32, skeleton_i64, skeleton_u8, skeleton_u16, &
                  skeleton_u32, skeleton_u64, skeleton_f32, skeleton_f64
  end enum
  public :: skeleton_i8, skeleton_i16, skeleton_i32, skeleton_i64, skeleton_u8, skeleton_u16, &
            skeleton_u32, skeleton_u64, skeleton_f32, skeleton_f64

  interface
    type(c_ptr) function start(program, application, config, steps, repetitions, argc, arguments, comm, &
        answer) bind(c, name="skeleton_fortran_start")
      import
      character(kind=c_char), intent(in) :: program(*), application(*), config(*), arguments(*)
      integer(c_int), value :: steps, repetitions, argc, comm
      integer(c_int), intent(out) :: answer
    end function
    logical(c_bool) function skeleton_repetition(run) bind(c)
      import
      type(c_ptr), value :: run
    end function
    logical(c_bool) function skeleton_step(run) bind(c)
      import
      type(c_ptr), value :: run
    end function
    integer(c_int64_t) function skeleton_open(run, group) bind(c)
      import
      type(c_ptr), value :: run
      character(kind=c_char), intent(in) :: group(*)
    end function
    subroutine skeleton_group_size(run, file, bytes) bind(c)
      import
      type(c_ptr), value :: run
      integer(c_int64_t), value :: file, bytes
    end subroutine
    subroutine skeleton_write(run, file, variable, values) bind(c)
      import
      type(c_ptr), value :: run, values
      integer(c_int64_t), value :: file
      character(kind=c_char), intent(in) :: variable(*)
    end subroutine
    subroutine skeleton_close(run, file) bind(c)
      import
      type(c_ptr), value :: run
      integer(c_int64_t), value :: file
    end subroutine
    subroutine skeleton_finish(run) bind(c)
      import
      type(c_ptr), value :: run
    end subroutine
    subroutine skeleton_fill(run, values, count, type, fill) bind(c)
      import
      type(c_ptr), value :: run, values
      integer(c_size_t), value :: count
      integer(c_int), value :: type, fill
    end subroutine
    subroutine skeleton_check_block(run, variable, offset, size, whole) bind(c)
      import
      type(c_ptr), value :: run
      character(kind=c_char), intent(in) :: variable(*)
      integer(c_int64_t), value :: offset, size, whole
    end subroutine
    subroutine skeleton_check_capacity(run, step_bytes) bind(c)
      import
      type(c_ptr), value :: run
      integer(c_int64_t), value :: step_bytes
    end subroutine
    integer(c_int64_t) function skeleton_grid(ranks, dimensions, index) bind(c)
      import
      integer(c_int64_t), value :: ranks
      integer(c_int), value :: dimensions, index
    end function
    integer(c_int64_t) function skeleton_coordinate(rank, ranks, dimensions, index) bind(c)
      import
      integer(c_int64_t), value :: rank, ranks
      integer(c_int), value :: dimensions, index
    end function
    integer(c_int64_t) function skeleton_of_rank(rank, count, numbers) bind(c)
      import
      integer(c_int64_t), value :: rank, count
      integer(c_int64_t), intent(in) :: numbers(*)
    end function
  end interface

contains

  ! Reads the options of the command line, then starts; of a communicator of all processes. Where answer is
  ! not skeleton_go, the program ends: with 0 after skeleton_help, with 2 after skeleton_usage_error.
  type(c_ptr) function skeleton_start(program, application, config, steps, repetitions, comm, answer) result(run)
    character(*), intent(in) :: program, application, config
    integer, intent(in) :: steps, repetitions, comm
    integer, intent(out) :: answer
    character(:), allocatable :: arguments, one
    integer :: i, length
    arguments = ""
    do i = 0, command_argument_count()
      call get_command_argument(i, length=length)
      if (allocated(one)) deallocate(one)
      allocate(character(length) :: one)
      call get_command_argument(i, one)
      arguments = arguments // one // c_null_char
    end do
    run = start(program // c_null_char, application // c_null_char, config // c_null_char, int(steps, c_int), &
                int(repetitions, c_int), int(command_argument_count() + 1, c_int), arguments, int(comm, c_int), answer)
  end function
end module
