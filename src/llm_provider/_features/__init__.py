"""The features: a folder each. They import the core; the core finds them through its doors."""
