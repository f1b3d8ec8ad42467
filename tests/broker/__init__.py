"""
Real Apache Kafka brokers to test against, started from their Maven artifacts.

`running(Shape(...))` starts a cluster and stops it; `python -m tests.broker` is the command.
"""
