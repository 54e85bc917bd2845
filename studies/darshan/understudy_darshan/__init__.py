"""The evaluation of Darshan: its overhead, its shutdown, and archives of its logs."""
