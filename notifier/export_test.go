package notifier

// Secrets returns the secrets of a destination.
func Secrets(d *Destination) []string { return d.secrets() }
