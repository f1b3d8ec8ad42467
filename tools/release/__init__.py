"""
What a release of Kafka declares, against what `dissector/protocol` does.

`python -m tools.release JAR...` prints each difference; with `--write` it takes them over.
"""
