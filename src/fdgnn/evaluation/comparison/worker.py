"""The process of one contestant: ``python -m fdgnn.evaluation.comparison.worker``.

A `Turn` comes through standard input from the process that started this one; when that process
ends, this one ends, too. Progress goes to standard output, one `Event` per line.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from typing import IO

from fdgnn.evaluation.comparison.contest import Event, Turn, take
from fdgnn.records import encode


def main() -> int:
    """Run this contestant's turn; return the exit code."""
    events = _take_over_output()
    turn: Turn = pickle.load(sys.stdin.buffer)  # from our own parent, through a pipe
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if "torch" in _libraries(turn.name):
        import torch

        torch.set_num_threads(1)

    def tell(event: Event) -> None:
        events.write(encode(event).decode() + "\n")
        events.flush()

    try:
        take(turn, tell)
    except Exception as error:
        import traceback

        traceback.print_exc()
        from fdgnn.evaluation.baselines.base import one_line

        print(one_line(error), file=sys.stderr)  # the last line of the log is the reason
        return 1
    return 0


def _end_with_parent() -> None:
    """The parent keeps the pipe open; once it is closed, nobody waits for us."""
    os.read(0, 1)  # unbuffered: a lock held at our own end would be fatal
    os._exit(1)


def _take_over_output() -> IO[str]:
    """Keep standard output for events; whatever else is printed goes to the log."""
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return events


def _libraries(name: str) -> tuple[str, ...]:
    from fdgnn.evaluation.baselines import RIVALS

    return RIVALS[name].libraries if name in RIVALS else ()


if __name__ == "__main__":
    sys.exit(main())
