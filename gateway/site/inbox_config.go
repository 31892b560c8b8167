package site

import "fmt"

// ErrNoInbox is returned for a key without inbox.
func ErrNoInbox(name string) error {
	return fmt.Errorf("the key %s has no inbox, so its messages cannot be read; the operator can add inbox 7d to the key", name)
}
