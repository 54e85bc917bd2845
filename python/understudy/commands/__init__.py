"""The room of the commands: one module per command, each defining `command`, a `click.Command`."""
