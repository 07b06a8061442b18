"""Helpers of the vendor's conversion tools that programs import with HB_ONNXRuntime."""
