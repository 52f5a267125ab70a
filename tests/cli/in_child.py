"""A command in a process of its own that can be stopped; what it imports is shared (see tests/killing.py)."""

import os
import sys

from clinometer.cli.main import main


def run_command(tell, folder, errors, words):
    """Run `clinometer …` in a folder; its errors go to a file or terminal of that name."""
    os.chdir(folder)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_NOCTTY), 2)
    sys.argv = ["clinometer", *words]
    tell("ready")
    main()
