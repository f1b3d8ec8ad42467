"""TCP reassembly with an object for each connection and stream."""
