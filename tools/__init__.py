"""Commands for the maintainers of this project."""
