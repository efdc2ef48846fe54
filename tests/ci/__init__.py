"""What runs a workflow's steps where there is no GitHub, and checks of the files for CI."""
