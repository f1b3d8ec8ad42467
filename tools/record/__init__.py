"""
The recorder: runs scenarios with real Kafka clients and captures their loopback traffic.

`python -m tools.record` writes the captures of `captures/`, their manifest and their README.
"""
