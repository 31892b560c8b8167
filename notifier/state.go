package notifier

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/caddy-notify/caddy-notify/internal/seal"
)

// A StateStore stores the states of services, such as a session, so that they
// survive a restart. The data is encrypted. The program that uses this package
// implements StateStore with its own storage. A StateStore must be safe for
// concurrent use.
type StateStore interface {
	// Load returns the data under a name, or nil if there is none. A name is the
	// [StateFolder] of the destination, a slash, and lower-case letters and
	// digits.
	Load(ctx context.Context, name string) ([]byte, error)

	// Store stores data under a name and replaces earlier data.
	Store(ctx context.Context, name string, data []byte) error

	// Delete deletes the data under a name, if there is any.
	Delete(ctx context.Context, name string) error
}

// KeepStates makes the destinations of the operator keep their states in store, or, if it is nil,
// in memory only. Destinations with store=no, and destinations of clients, never store any.
//
// A state is encrypted with a key that is derived from the destination's URL, so
// that only a program with that URL can read it. It is lost if the URL changes.
func (s *Sender) KeepStates(store StateStore) {
	if store == nil {
		s.states.Store(nil)
		return
	}
	s.states.Store(&store)
}

// states returns the store for the states of the destination, or nil if it stores none.
func (d *delivery) states(t *Destination) StateStore {
	store := d.sender.states.Load()
	if store == nil || !t.options.store || d.options.Transient || t.policy != nil {
		return nil
	}
	return *store
}

// StateFolder returns the folder that the names of all states of a destination
// begin with: lower-case letters and digits. It does not reveal the URL.
func StateFolder(d *Destination) string {
	sealer, err := stateSealer(d)
	if err != nil {
		return ""
	}
	return stateFolder(sealer)
}

// stateSealer returns the sealer for the states of a destination.
func stateSealer(d *Destination) (*seal.Sealer, error) {
	// The prefix makes the shortest URL long enough.
	return seal.New("state of a destination: " + d.URL())
}

func stateFolder(s *seal.Sealer) string {
	hash := s.Hash("folder", "")
	return hex.EncodeToString(hash[:16])
}

// statePlace returns the sealer for a state and the name it is stored under.
func (c *Client) statePlace(name string) (sealer *seal.Sealer, stored string, err error) {
	if sealer, err = stateSealer(c.target); err != nil {
		return nil, "", err
	}
	hash := sealer.Hash("state", name)
	return sealer, stateFolder(sealer) + "/" + hex.EncodeToString(hash[:16]), nil
}

const stateTable = "state"

// KeepsState reports whether states outlive the process: see [Client.SaveState].
func (c *Client) KeepsState() bool { return c.states != nil }

// LoadState sets v to the state that [Client.SaveState] has saved under name
// for the same destination, and reports whether there is one.
func (c *Client) LoadState(ctx context.Context, name string, v any) bool {
	if c.states == nil {
		return false
	}
	sealer, stored, err := c.statePlace(name)
	if err != nil {
		return false
	}
	data, err := c.states.Load(ctx, stored)
	if err != nil {
		c.Warn("reading the stored state: %v", err)
	}
	if err != nil || data == nil {
		return false
	}
	text, err := sealer.Open(data, stateTable, []byte(name))
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		c.Warn("the stored state is damaged and is not used")
	}
	return err == nil
}

// SaveState stores v, as JSON, under name, so that messages to the destination
// find it after a restart. It does nothing for destinations that store no
// states, so a service also holds the state in memory. A failure is a warning.
func (c *Client) SaveState(ctx context.Context, name string, v any) {
	if c.states == nil {
		return
	}
	if err := c.saveState(ctx, name, v); err != nil {
		c.Warn("storing the state for the next start: %v", err)
	}
}

func (c *Client) saveState(ctx context.Context, name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding it: %w", err)
	}
	sealer, stored, err := c.statePlace(name)
	if err != nil {
		return err
	}
	return c.states.Store(ctx, stored, sealer.Seal(text, stateTable, []byte(name)))
}

// DropState deletes the state under name.
func (c *Client) DropState(ctx context.Context, name string) {
	if c.states == nil {
		return
	}
	_, stored, err := c.statePlace(name)
	if err == nil {
		err = c.states.Delete(ctx, stored)
	}
	if err != nil {
		c.Warn("deleting the stored state: %v", err)
	}
}
