"""
A Kafka cluster as its clients see it.

Connections and logins, fields by what they mean to brokers, conversion of messages between
versions, an embedded cluster, and the options of commands that connect to one.
"""
