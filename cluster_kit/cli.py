import typer, rich
