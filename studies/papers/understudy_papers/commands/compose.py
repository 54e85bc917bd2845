"""understudy compose: from what is stated of a simulation to a workload."""

from pathlib import Path

import click

from understudy.contracts import strict, workload
from understudy.errors import UnderstudyError
from understudy.files import write_text
from understudy_papers.model import simulation, sizing


@click.command()
@click.argument("specification", metavar="SIMULATION", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=None,
    help="Write to this file; default: standard output.",
)
@click.option(
    "--sizing",
    "calibration",
    type=click.Path(path_type=Path),
    default=None,
    help="A file from `understudy calibrate`: report on standard error how many "
    "bytes HDF5 adds to the payload.",
)
@click.option("-f", "--force", is_flag=True, help="Replace the output file if it exists.")
def command(
    specification: Path, output: Path | None, calibration: Path | None, force: bool
) -> None:
    """Compose a workload from SIMULATION, a specification as in studies/papers/simulations/.

    Every dump has exactly the stated bytes.

    Example: understudy compose studies/papers/simulations/mphys-a.json -o mphys-a.json
    """
    if output is not None and output.exists() and not force:
        raise UnderstudyError(f"{output}: exists already; choose another name or use --force")
    stated = strict.load(simulation.Simulation, specification)
    composed = simulation.workload_of(stated, str(specification))
    text = composed.to_text()
    workload.parse(text, str(specification))
    if calibration is not None:
        _say_containers(composed, strict.load(sizing.Sizing, calibration))
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)


def _say_containers(composed: workload.Workload, fitted: sizing.Sizing) -> None:
    for stream in composed.streams:
        if stream.makes_new_files and stream.layout == "shared" and stream.method == fitted.method:
            sizes = [sizing.container_bytes(fitted, composed.ranks, dump) for dump in stream.steps]
            click.echo(
                f"understudy: {stream.name}: {len(sizes)} files, {stream.bytes} B of payload, "
                f"containers about {sum(sizes):.0f} B more",
                err=True,
            )
        else:
            click.echo(
                f"understudy: {stream.name}: no prediction; the calibration is for new files "
                f"shared by all ranks, written with {fitted.method}",
                err=True,
            )
