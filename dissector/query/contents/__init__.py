"""What keys and values of records say, by their schemas: for filters, columns and answers."""
