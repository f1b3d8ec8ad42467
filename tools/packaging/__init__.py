"""Packages for systems beside PyPI's: Debian's, and a formula of Homebrew."""
