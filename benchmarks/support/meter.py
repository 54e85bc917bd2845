"""Runs a command and writes what it cost: `python -I -S meter.py FILE COMMAND...`.

FILE gets a JSON object: elapsed_s, cpu_s (user and system time of all processes of the command)
and peak_bytes (the most that one of them had in memory). A program's peak includes that of the
process which started it; therefore this small one stands in between.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path


def main() -> int:
    """The exit status of the command."""
    start = time.monotonic()
    process = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    cost = {
        "elapsed_s": time.monotonic() - start,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * 1024,
    }
    Path(sys.argv[1]).write_text(json.dumps(cost))
    return abs(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    sys.exit(main())
