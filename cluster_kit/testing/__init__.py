"""The pytest plugin with the fixture `cluster`, for users' own tests."""
