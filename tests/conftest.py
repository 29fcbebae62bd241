"""What every test package sees."""

pytest_plugins = ["tests.servers.fixtures"]
