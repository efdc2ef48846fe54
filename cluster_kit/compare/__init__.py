"""The same model and data through every way of training, under equal CPU budgets."""
