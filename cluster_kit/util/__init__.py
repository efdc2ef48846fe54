"""Small tools that know nothing of clusters."""
