"""Models at Azure, Bedrock, Vertex and Foundry. Extras `azure` and `bedrock`; tests/end_to_end/test_clouds.py."""
