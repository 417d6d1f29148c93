"""``python -m fdgnn`` is the ``fdgnn`` command."""

from fdgnn.cli import main

main()
