"""`python -m portrayal` is the command `portrayal`."""

from portrayal.cli.main import main

main()
