"""The pictures of README and docs, each made from a real run: `make pictures [PICTURE=…]`."""
