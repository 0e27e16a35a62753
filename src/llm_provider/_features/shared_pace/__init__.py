"""A pace that the processes of a machine share. No extra; tests/_features/shared_pace."""
