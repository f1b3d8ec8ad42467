"""Functions of kafkashark, timed against those of other libraries in one process."""
