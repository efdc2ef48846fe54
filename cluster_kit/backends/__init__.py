"""What runs a cluster's containers, one package each."""
