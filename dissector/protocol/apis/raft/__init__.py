"""The controllers' Raft quorum (KIP-595, KIP-853)."""
