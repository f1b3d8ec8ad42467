"""Apache Avro: schemas, their fingerprints, binary values, and container files."""
