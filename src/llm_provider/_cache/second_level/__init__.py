"""A store of answers that several machines share, behind the local store of each."""
