"""Record batches and message sets in columns: located, checked, decompressed, decoded."""
