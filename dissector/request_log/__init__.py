"""Request logs of brokers, and protocol logs of proxies, as captures."""
