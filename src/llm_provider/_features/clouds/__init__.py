"""Models at Azure, Bedrock and Google. Extras `azure` and `bedrock`; tests/end_to_end/test_clouds.py."""
