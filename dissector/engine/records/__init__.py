"""Record batches and message sets in columns: located, CRC-checked, decompressed, decoded."""
