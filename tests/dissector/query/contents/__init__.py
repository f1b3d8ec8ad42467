"""Tests of what keys and values of records say."""
