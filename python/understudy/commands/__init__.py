"""Plugin directory of the commands: one module per command,
each with `command`, a `click.Command`."""
