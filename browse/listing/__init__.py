"""The list: columns of rows, loading, filters, order, searches and rendering."""
