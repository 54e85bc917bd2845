"""The shutdown of Darshan: what understudy-darshan-shutdown measures."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from understudy.contracts.measurement import Benchmark
from understudy.contracts.run import Sample
from understudy.errors import UnderstudyError
from understudy.producers import _benchmark
from understudy.producers._benchmark import parse
from understudy.producers._reading import BYTES, LOWER, SECONDS

__all__ = ["ARM", "SCHEMA", "of_output", "parse", "read", "samples"]

SCHEMA = "understudy/shutdown/1"
ARM = "benchmark"
NAME = "darshan-shutdown"
WORKLOADS = 4


def read(path: Path) -> Benchmark:
    """The measurement in a file."""
    return _benchmark.read(path, "shutdown")


def of_output(
    path: Path,
    *,
    version: str,
    command_line: Sequence[str],
    sizes: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
) -> dict[str, Any]:
    """The measurement from the file that the program wrote; `version` is Darshan's, `sizes` are
    further bytes of the last log of a workload, by metric and workload."""
    text = _benchmark.text_of(path, "understudy-darshan-shutdown")
    try:
        output = json.loads(text)
        here, options = output["environment"], output["options"]
        if output["finished"] is not True:
            raise ValueError("it is not finished")
        rates = [rate for sample in output["samples"] for rate in _rates(sample)]
        last = options["samples"] - 1
        rates += [
            {
                "operation": workload,
                "repetition": last,
                "metric": metric,
                "unit": BYTES,
                "value": value,
            }
            for metric, of in sizes.items()
            for workload, value in of.items()
        ]
        if len(output["samples"]) != WORKLOADS * options["samples"]:
            raise ValueError(f"{len(output['samples'])} samples")
        return _benchmark.row(
            "shutdown",
            name=NAME,
            options=options,
            version=version,
            command_line=command_line,
            started=here["started"],
            ranks=int(here["ranks"]),
            nodes=len(here["nodes"]),
            directory=here["directory"],
            rates=rates,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnderstudyError(
            f"{path}: expected the measurement of a shutdown: {type(error).__name__}: {error}"
        ) from None


def _rates(sample: dict[str, Any]) -> Iterator[dict[str, Any]]:
    common = {"operation": sample["workload"], "repetition": sample["sample"]}
    yield common | {"metric": "log_bytes", "unit": BYTES, "value": sample["log_bytes"]}
    for name, value in sample["seconds"].items():
        yield common | {"metric": f"{name}_s", "unit": SECONDS, "value": value}


def samples(measurement: Benchmark) -> Iterator[Sample]:
    for rate in measurement.rates:
        yield Sample(
            metric=rate.metric,
            unit=rate.unit,
            better=LOWER,
            stream=rate.operation,
            repetition=rate.repetition,
            value=rate.value,
        )
