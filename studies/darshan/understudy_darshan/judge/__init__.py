"""What Darshan costs: operations, overhead and shutdown."""
