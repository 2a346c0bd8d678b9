"""Gauges and exact contraction of Forney models."""
