"""What an app's users call: enqueue jobs, wait for them, look at them and change them."""
