"""The foundation of all other folders. No module here knows models, providers or money."""
