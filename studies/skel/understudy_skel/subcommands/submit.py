"""understudy skel submit: a job script."""

from pathlib import Path

import click

from understudy.errors import UnderstudyError
from understudy_skel import generate
from understudy_skel.project import DESCRIPTOR, DIRECTORY, FORCE, PARAMETERS, check, load, write


@click.command()
@DESCRIPTOR
@PARAMETERS
@click.option(
    "-s",
    "--system",
    type=click.Choice(generate.submit_systems()),
    default="slurm",
    show_default=True,
    help="The batch system.",
)
@click.option("-b", "--batch", "batch_name", default=None, help="Only this batch [default: all].")
@click.option(
    "-t",
    "--target",
    default="out",
    show_default=True,
    help="Directory on the file system to be measured.",
)
@click.option("--cores-per-node", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("-A", "--account", default="", help="Account of the job.")
@click.option("--launcher", default="", help="Launcher of MPI programs [default: srun or mpirun].")
@DIRECTORY
@FORCE
def command(
    descriptor_file: Path,
    parameters_file: Path | None,
    system: str,
    batch_name: str | None,
    target: str,
    cores_per_node: int,
    account: str,
    launcher: str,
    directory: Path,
    force: bool,
) -> None:
    """Write a job script for each batch of the parameters: submit_<system>_<batch>.

    Each test runs with its method and parameters, and writes a measurement (JSON).

    Example: understudy skel submit gts_skel.xml --system slurm --cores-per-node 16
    """
    descriptor, values = load(descriptor_file, parameters_file)
    check(descriptor, values)
    batches = [b for b in values.batches if batch_name in (None, b.name)]
    if not batches:
        names = ", ".join(b.name for b in values.batches)
        raise UnderstudyError(f"--batch {batch_name}: expected one of {names}")
    texts = {
        directory / f"submit_{system}_{batch.name}": generate.submit(
            values,
            batch,
            system,
            cores_per_node=cores_per_node,
            target=target,
            account=account,
            launcher=launcher,
        )
        for batch in batches
    }
    write(texts, force, directory)
