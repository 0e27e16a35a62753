"""Provider batch APIs: a delivery at half price, whose jobs outlive the process."""
