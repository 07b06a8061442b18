"""Boards that a farm leases."""
