"""Models of outputs of ADIOS2 (YAML), as workloads."""

from collections.abc import Callable
from pathlib import Path

from understudy.adios2 import configuration, description, model_file
from understudy.contracts.workload import Workload
from understudy.errors import UnderstudyError
from understudy.program import rules
from understudy.readers.bp import OPTIONS

__all__ = ["OPTIONS"]  # a hook

KIND = "a model of an output of ADIOS2"
SUFFIXES = (".yaml", ".yml")


def read(
    path: Path,
    *,
    name: str | None = None,
    keep_names: bool = False,
    tick: Callable[[float], None] = lambda _: None,
    config: Path | None = None,
    io: str | None = None,
) -> Workload:
    """The workload of a model; with `config`, as if it were written with that configuration of
    ADIOS2, its `io`."""
    if configuration.is_configuration(path):
        raise UnderstudyError(
            f"{path}: a configuration of ADIOS2, which has no variables; expected a BP file with "
            f"it: understudy describe FILE.bp --config {path}"
        )
    output = configuration.chosen(model_file.read(path), config, io)
    workload = description.workload_of(output, name=name, keep_names=keep_names, model=True)
    rules.check(workload, str(path))
    tick(1.0)
    return workload
