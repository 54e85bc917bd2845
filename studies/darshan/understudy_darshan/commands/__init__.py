"""Commands that archive and synthesize Darshan logs."""
