"""
Kafka's own code as oracle: what its generated classes make of the bytes that we read and write.

`Oracle.java` runs from source on the jars of `tests.broker`; `kafka.py` speaks to it.
"""
