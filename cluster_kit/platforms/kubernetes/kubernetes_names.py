"""Names of what Kubernetes is told. Pure."""

GROUP = "jobset.x-k8s.io/v1alpha2"
"""The API group of JobSets, with its version."""
