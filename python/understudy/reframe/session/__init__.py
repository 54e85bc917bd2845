"""The session: its options, its cases and how they end."""
