"""Files and Parquet at local paths and URIs."""
