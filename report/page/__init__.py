"""The page: tables, plots and lanes; all text from the capture is escaped."""
