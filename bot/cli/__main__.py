"""`python -m bot.cli` is `assay`."""

from bot.cli import main

main()
