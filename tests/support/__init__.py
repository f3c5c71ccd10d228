"""What the tests of several parts build their worlds with."""
