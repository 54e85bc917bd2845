"""From the accesses in a log to series of files, streams, dumps and transfer sizes."""
