"""The element types of ADIOS 1.13: its names for them, their bytes, and what C and Fortran call
them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementType:
    """`workload` is the type of a workload's variable, of which one element has `parts`. A `text`
    is a scalar of as many elements as it has bytes."""

    names: tuple[str, ...]
    bytes: int
    workload: str
    parts: int
    c: str
    c_enum: str
    fortran: str
    integer: bool = False
    text: bool = False


def _of(
    names: str, size: int, workload: str, c: str, c_enum: str, fortran: str, parts: int = 1
) -> ElementType:
    return ElementType(
        names=tuple(names.split("|")),
        bytes=size,
        workload=workload,
        parts=parts,
        c=c,
        c_enum=c_enum,
        fortran=fortran,
        integer=workload[0] in "iu",
    )


TEXT = ElementType(
    names=("string",),
    bytes=1,
    workload="i8",
    parts=1,
    c="const char *",
    c_enum="",
    fortran="character(kind=c_char)",
    text=True,
)


# The first name of each is the one that generated files use. Fortran has no unsigned integers: the
# signed type of the same size holds the same bytes.
TYPES = (
    _of("byte|char|integer*1", 1, "i8", "int8_t", "SKELETON_I8", "integer(c_int8_t)"),
    _of("short|integer*2", 2, "i16", "int16_t", "SKELETON_I16", "integer(c_int16_t)"),
    _of("integer|int|integer*4", 4, "i32", "int32_t", "SKELETON_I32", "integer(c_int32_t)"),
    _of("long|long long|integer*8", 8, "i64", "int64_t", "SKELETON_I64", "integer(c_int64_t)"),
    _of(
        "unsigned byte|unsigned char|unsigned integer*1",
        1,
        "u8",
        "uint8_t",
        "SKELETON_U8",
        "integer(c_int8_t)",
    ),
    _of(
        "unsigned short|unsigned integer*2",
        2,
        "u16",
        "uint16_t",
        "SKELETON_U16",
        "integer(c_int16_t)",
    ),
    _of(
        "unsigned integer|unsigned int|unsigned integer*4",
        4,
        "u32",
        "uint32_t",
        "SKELETON_U32",
        "integer(c_int32_t)",
    ),
    _of(
        "unsigned long|unsigned integer*8",
        8,
        "u64",
        "uint64_t",
        "SKELETON_U64",
        "integer(c_int64_t)",
    ),
    _of("real|real*4|float", 4, "f32", "float", "SKELETON_F32", "real(c_float)"),
    _of("double|real*8|long float", 8, "f64", "double", "SKELETON_F64", "real(c_double)"),
    _of("complex|complex*8", 8, "f32", "float", "SKELETON_F32", "real(c_float)", 2),
    _of("double complex|complex*16", 16, "f64", "double", "SKELETON_F64", "real(c_double)", 2),
    TEXT,
)
BY_NAME = {name: kind for kind in TYPES for name in kind.names}
# What ADIOS has besides, and why a skeleton cannot hold it.
UNFIT = {
    "real*16": "its bytes differ from machine to machine",
    "long double": "its bytes differ from machine to machine",
}
