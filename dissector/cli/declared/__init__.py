"""The options of commands: declarations that load no command."""
