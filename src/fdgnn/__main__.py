"""``python -m fdgnn`` is the ``fdgnn`` command."""

from fdgnn.cli import main

if __name__ == "__main__":  # worker processes import this file
    main()
