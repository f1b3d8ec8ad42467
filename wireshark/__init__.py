"""
A capture for Wireshark's own window: with comments, key logs, and a profile for its traffic.

`wireshark_folder` writes it, `profile_files` the profile, by the ports that `kafka_ports` finds;
`wireshark_program` opens it. `extcap_program` is what Wireshark runs for our interfaces: request
logs, and a proxy to a cluster.
"""
