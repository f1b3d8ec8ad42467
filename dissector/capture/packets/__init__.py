"""Link, network and transport headers of packets in columns."""
