"""Events as rows, as text and as diagrams."""
