package alerting

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// TestSilenceCache checks that a change of this gateway is known without reading the silences
// of all keys, and that the change of another gateway is not missed.
func TestSilenceCache(t *testing.T) {
	t.Parallel()
	var c silenceCache
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	one := rules.Silences{{ID: uuid.UUID{1}, Until: now.Add(48 * time.Hour)}}
	if ok := c.change("a", one, nil, []byte("1")); ok || !c.has("a") || c.newlyNear(time.Now()) != nil {
		t.Error("silences that were never read are known")
	}
	c.places.Store(&map[string]rules.Silences{})
	for i, x := range []struct {
		place    string
		silences rules.Silences
		before   string
		version  string
		near, ok bool
	}{
		{"a", one, "", "1", true, true},
		{"b", one, "1", "2", true, true},
		{"a", append(one, one...), "2", "3", false, true},
		{"b", nil, "x", "4", false, false}, // another gateway has made x
		{"b", nil, "3", "4", false, true},
	} {
		ok := c.change(x.place, x.silences, []byte(x.before), []byte(x.version))
		if near := len(c.newlyNear(now)) > 0; near != x.near || ok != x.ok {
			t.Errorf("%d: %v, %v", i, near, ok)
		}
	}
	if !c.has("a") || c.has("b") || !c.isNear.Load() {
		t.Errorf("known are %+v", *c.places.Load())
	}
	c.change("a", nil, []byte("4"), []byte("5"))
	if c.newlyNear(now); c.isNear.Load() || c.has("a") {
		t.Errorf("known are %+v", *c.places.Load())
	}
	planned := rules.Silences{
		{ID: uuid.UUID{2}, From: now.Add(2 * time.Hour), Until: now.Add(3 * time.Hour)},
		{ID: uuid.UUID{3}, From: now.Add(time.Hour), Until: now.Add(5 * time.Hour)},
	}
	c.change("a", planned, []byte("5"), []byte("6"))
	for _, x := range []struct {
		after time.Duration
		near  bool
	}{{0, false}, {58 * time.Minute, false}, {59 * time.Minute, true}, {time.Hour, false}} {
		if near := c.newlyNear(now.Add(x.after)); (len(near) == 1) != x.near || c.isNear.Load() != (x.after >= 59*time.Minute) {
			t.Errorf("after %s, %v are near", x.after, near)
		}
	}
}
