"""`python -m clinometer` is the `clinometer` command."""

from clinometer.cli.main import main

main()
