"""
Figures of traffic for monitoring: Prometheus' text over HTTP or in a file, and OTLP metrics.

`exchange_metrics` and `group_metrics` add up windows into `metric_series`, whose number is bounded;
a snapshot of them is written as text or sent. The figures are those of `stats` and `groups`.
"""
