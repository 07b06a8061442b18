"""Fixtures of all tests: of the core in tests/, and of each guest next to it in packages/."""

pytest_plugins = ["tests.shared"]
