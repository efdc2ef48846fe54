"""Compares ways of training: the same model, data and CPU budget for each."""
