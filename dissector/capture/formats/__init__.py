"""Capture files: pcap, pcapng, compression."""
