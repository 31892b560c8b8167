package device

import (
	"errors"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/site"
)

func TestInvitation(t *testing.T) {
	now := second(0)
	x := newInvitation(ops, []string{"night"}, now)
	for _, tt := range []struct {
		name string
		x    *Invitation
		to   site.Place
		at   time.Time
		want error
	}{
		{"at once", x, ops, now, nil},
		{"until the end", x, ops, now.Add(24*time.Hour - 1), nil},
		{"too late", x, ops, now.Add(24 * time.Hour), ErrInvitation},
		{"another key", x, site.Place{Home: ops.Home, Key: "dev"}, now, ErrInvitation},
		{"the key of another site", x, site.Place{Home: "other", Key: ops.Key}, now, ErrInvitation},
		{"none", nil, ops, now, ErrInvitation},
	} {
		if err := tt.x.check(tt.to, tt.at); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
