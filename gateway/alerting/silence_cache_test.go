package alerting

import (
	"testing"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestSilenceCache checks that a change of this gateway is known without reading the silences
// of all keys, and that the change of another gateway is not missed.
func TestSilenceCache(t *testing.T) {
	t.Parallel()
	var c silenceCache
	one := rules.Silences{{ID: uuid.UUID{1}}}
	if begun, ok := c.change("a", one, nil, []byte("1")); begun || ok || !c.has("a") {
		t.Error("silences that were never read are known")
	}
	c.places.Store(&map[string]rules.Silences{})
	for i, x := range []struct {
		place     string
		silences  rules.Silences
		before    string
		version   string
		begun, ok bool
	}{
		{"a", one, "", "1", true, true},
		{"b", one, "1", "2", true, true},
		{"a", append(one, one...), "2", "3", false, true},
		{"b", nil, "x", "4", false, false}, // another gateway has made x
		{"b", nil, "3", "4", false, true},
	} {
		if begun, ok := c.change(x.place, x.silences, []byte(x.before), []byte(x.version)); begun != x.begun || ok != x.ok {
			t.Errorf("%d: %v, %v", i, begun, ok)
		}
	}
	if !c.has("a") || c.has("b") || !c.any() {
		t.Errorf("known are %+v", *c.places.Load())
	}
	if c.change("a", nil, []byte("4"), []byte("5")); c.any() {
		t.Errorf("known are %+v", *c.places.Load())
	}
}
