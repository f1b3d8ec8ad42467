"""Topics, configurations, quotas, client metrics."""
