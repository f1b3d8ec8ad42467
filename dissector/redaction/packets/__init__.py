"""Packets with replaced payload and addresses, and the pcapng file that holds them."""
