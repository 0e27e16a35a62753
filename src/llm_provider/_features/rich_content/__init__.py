"""Citations, images, audio and tools of the provider in answers. No extra; tests/_features/rich_content."""
