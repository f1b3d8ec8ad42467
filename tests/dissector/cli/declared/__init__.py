"""Tests of the declarations of options."""
