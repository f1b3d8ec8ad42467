"""Reports: a capture as one HTML page, with plots, events, findings and its gaps."""
