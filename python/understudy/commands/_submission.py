"""The turns of a campaign within one job: cases of their own jobs can be hours apart."""

import argparse
import importlib.util
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from understudy import paths
from understudy.errors import UnderstudyError
from understudy.files import write_text
from understudy.reframe import systems
from understudy.reframe.session import reframe_process
from understudy.reframe.session.campaign import Campaign, first_error

CHECK = "understudy.reframe.session.allocation"
PASSED_ON = "UNDERSTUDY_"  # beginning of the variables that the job is given


def submit(
    campaign: Campaign,
    turns: int,
    left: int,
    nodes: int | None,
    time: str | None,
    more: Sequence[str],
) -> Path:
    """Run the turns that are left in one job, and wait for it: the file with its messages."""
    totals = [campaign.listed(side)[0] for side in campaign.sides]
    partition = _partition(campaign)
    each = max(total.ranks_per_node for total in totals)
    nodes = nodes or max(total.nodes for total in totals)
    log = campaign.folder / "job.log"
    script = campaign.folder / "job.sh"
    write_text(script, _script(campaign, turns, log, more))
    longest = partition["extras"].get(systems.MAX_SECONDS)
    limit_s = left * sum(total.limits_s for total in totals)
    limit = time or f"{min(limit_s, longest or limit_s)}s"
    check = importlib.util.find_spec(CHECK)
    assert check and check.origin, "the package has it"
    command = [
        reframe_process.program(),
        "-C",
        str(paths.where("config")),
        "-c",
        check.origin,
        "-n",
        "^Allocation$",
        "--system",
        f"{campaign.system_name}:{partition['name']}",
        "-S",
        f"script={script}",
        "-S",
        f"nodes={nodes}",
        "-S",
        f"ranks_per_node={each}",
        "-S",
        f"time_limit={limit}",
        *_job_options(campaign.selection),
        "--report-file",
        str(campaign.folder / "job.json"),
        "-r",
    ]
    log.unlink(missing_ok=True)
    submitted = campaign.folder / "submission.log"
    with submitted.open("wb") as out:
        reframe_process.run(command, reframe_process.environment(), out)
    if not log.exists():
        raise UnderstudyError(f"the job: {first_error(submitted)} ({submitted})")
    return log


def _script(campaign: Campaign, turns: int, log: Path, more: Sequence[str]) -> str:
    """Text of the job script: the same command, where cases are no jobs of their own."""
    given = {key: value for key, value in os.environ.items() if key.startswith(PASSED_ON)}
    lines = [
        f"export {shlex.quote(f'{key}={value}')}"
        for key, value in (given | {systems.ALLOCATION: campaign.system_name}).items()
    ]
    again = [sys.executable, str(paths.command()), "campaign", *campaign.words(turns, more)]
    lines.append(f"cd {shlex.quote(str(Path.cwd()))}")
    lines.append(f"exec {shlex.join(again)} >{shlex.quote(str(log))} 2>&1")
    return "\n".join([*lines, ""])


def _partition(campaign: Campaign) -> systems.Row:
    """That of the side before, whose access options the job has; else the first of the system."""
    both = campaign.system.partition(":")[2]
    rows = campaign.partitions()
    named = campaign.sides[0].partition or both or rows[0]["name"]
    [partition] = [row for row in rows if row["name"] == named]
    if partition["scheduler"] == "local":
        raise UnderstudyError(
            f"--submit: {campaign.system_name}:{named} has no batch system; expected none of it"
        )
    return partition


def _job_options(selection: Sequence[str]) -> list[str]:
    """Options of the batch system among those of ReFrame, such as -J account=ACCOUNT."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-J", "--job-option", action="append", default=[])
    given = parser.parse_known_args(list(selection))[0].job_option
    return [word for option in given for word in ("-J", option)]
