"""
The recorder: real Kafka clients play short scenarios while their loopback traffic is captured.

`python -m tools.record` writes the captures of `captures/`, their manifest and their README.
"""
