"""Rules of topics, logs, producers, consumers and transactions."""
