"""
Kafka's own code as oracle: its generated classes decode and encode the same bytes.

`Oracle.java` runs from source on the jars of `tests.broker`; `kafka_classes.py` communicates with
it.
"""
