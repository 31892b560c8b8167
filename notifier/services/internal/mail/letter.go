package mail

import (
	"slices"
)

// Letter is a message to some of the targets.
type Letter struct{ To, CC, BCC []Address }

// Without is list without those that are among others, and without doubles.
func Without(list, others []Address) (out []Address) {
	for _, b := range list {
		same := func(o Address) bool { return o.Address == b.Address }
		if !slices.ContainsFunc(others, same) && !slices.ContainsFunc(out, same) {
			out = append(out, b)
		}
	}
	return out
}

// Addresses are the mailboxes without their names.
func Addresses(list []Address) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = b.Address
	}
	return out
}

// Headers are the mailboxes as header fields want them.
func Headers(list []Address) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = b.Header()
	}
	return out
}
