package notifier

// Secrets lists what must not be shown of a destination.
func Secrets(d *Destination) []string { return d.schema.secrets() }
