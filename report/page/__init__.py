"""The page: figures as tables, plots and lanes; all text of the capture is escaped."""
