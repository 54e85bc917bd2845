"""The command `understudy skel`."""
