"""The page: figures as tables, plots and lanes, safe from what a capture holds."""
