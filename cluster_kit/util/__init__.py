"""Small tools that are independent of clusters."""
