"""
Compares the declarations of a Kafka release with those in `dissector/protocol`.

`python -m tools.release JAR...` prints each difference; `--write` applies them.
"""
