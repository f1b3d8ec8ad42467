"""Commands and their parameters; the usual command lines are parsed without Typer."""
