"""
A Kafka cluster as its clients see it.

Connections and logins, fields by what they mean to brokers, conversion of messages between
versions, and an embedded cluster.
"""
