"""Jobs over HTTP: submit them, look at them, and change them."""
