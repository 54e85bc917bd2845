"""The subcommands of `understudy skel`; each module has a click.Command called `command`."""
