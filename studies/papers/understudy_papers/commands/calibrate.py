"""understudy calibrate: how large files get, by a scaling study with the player."""

from pathlib import Path

import click

from understudy.errors import UnderstudyError
from understudy.files import write_text
from understudy.producers import player
from understudy_papers.model import sizing
from understudy_papers.model.composition import KINDS, Kind


def numbers(_: click.Context, option: click.Parameter, text: str) -> tuple[int, ...]:
    """Whole numbers above 0 from 1,2,4."""
    try:
        values = tuple(int(word) for word in text.split(",") if word.strip())
    except ValueError:
        values = (0,)
    if any(number < 1 for number in values):
        raise UnderstudyError(
            f"{option.opts[0]} {text}: expected whole numbers above 0, separated by commas"
        )
    return values


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="Write samples and fitted constants to this file.",
)
@click.option("--ranks", default="1,2,4", show_default=True, callback=numbers, help="MPI ranks.")
@click.option(
    "--hold-out",
    default="8",
    show_default=True,
    callback=numbers,
    help="Numbers of ranks that are not fitted, to test the prediction.",
)
@click.option(
    "--part-bytes",
    default="32768,131072,524288",
    show_default=True,
    callback=numbers,
    help="Part sizes: 8 bytes per node of a rank's mesh.",
)
@click.option(
    "--variables",
    default="8,16,32",
    show_default=True,
    callback=numbers,
    help="Numbers of variables on the mesh.",
)
@click.option(
    "--mesh",
    type=click.Choice(KINDS),
    default="unstructured",
    show_default=True,
    help="Mesh kind; every file contains its coordinates.",
)
@click.option(
    "-d",
    "--directory",
    type=click.Path(path_type=Path),
    default=None,
    help="Directory for the files, removed afterwards; default: the temporary directory.",
)
@click.option("-f", "--force", is_flag=True, help="Replace the output file if it exists.")
def command(
    output: Path,
    ranks: tuple[int, ...],
    hold_out: tuple[int, ...],
    part_bytes: tuple[int, ...],
    variables: tuple[int, ...],
    mesh: Kind,
    directory: Path | None,
    force: bool,
) -> None:
    """Fit Equation 1, the size of a file, to HDF5 files that the player writes.

    F = Pr (PS (alpha Vars + beta) + gamma Vars + delta) + psi Vars + eta; see docs/equations.md.

    Example: understudy calibrate -o sizing.json -d /dev/shm
    """
    if output.exists() and not force:
        raise UnderstudyError(f"{output}: exists already; choose another name or use --force")
    study = sizing.Study(
        mesh=mesh, ranks=ranks, held_out_ranks=hold_out, part_bytes=part_bytes, variables=variables
    )
    calibration = sizing.calibrate(
        study, directory, lambda s: click.echo(f"understudy: {s}", err=True), player.read
    )
    write_text(output, calibration.to_text())
    for name, fit in (("file", calibration.file), ("container", calibration.container)):
        click.echo(f"{name}: {_line(fit)}")


def _line(fit: sizing.Fit) -> str:
    c, left = fit.constants, fit.residuals
    text = (
        f"alpha {c.alpha:.5g}, beta {c.beta:.5g}, gamma {c.gamma:.5g}, delta {c.delta:.5g}, "
        f"psi {c.psi:.5g}, eta {c.eta:.5g}; error of {left.samples} files: mean {left.mean:.3%}, "
        f"max {left.max:.3%}"
    )
    if fit.held_out is None:
        return text
    on = ", ".join(map(str, fit.held_out_ranks))
    out = fit.held_out
    return (
        f"{text}; of {out.samples} held out on {on} ranks: mean {out.mean:.3%}, max {out.max:.3%}"
    )
