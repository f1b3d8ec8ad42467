"""Settings of a project: what its file gives the options of commands."""
