"""Every other provider, through litellm. Extra `litellm`; tests/_features/litellm."""
