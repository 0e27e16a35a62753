"""The values that users receive. All but `Results` are frozen."""
