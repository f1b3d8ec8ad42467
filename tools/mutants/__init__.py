"""
`make mutants ROOM=...`: runs the tests of a room against small faults in its code.

`mutation_sites` finds the places of a module for faults, `forked_run` runs tests on one. The
libraries for this (mutmut, cosmic-ray) start a new process for each fault, write it to the files,
or can't choose some of all faults; most of the time would be imports.
"""
