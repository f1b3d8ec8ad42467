"""The probe against Apache Kafka."""
