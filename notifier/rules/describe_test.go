package rules

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestDescribe checks what people read about rules.
func TestDescribe(t *testing.T) {
	window := func(args ...string) Window {
		w, err := ParseWindow(args)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	monday, err := ParseDigest([]string{"mon", "08:00", "Europe/Berlin"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		rules *Rules
		want  []string
	}{
		{nil, nil},
		{new(Rules), nil},
		{
			&Rules{
				Dedupe: &Dedupe{Window: 10 * time.Minute},
				Quiet: []Quiet{
					{window("22:00-07:00"), Scope{}},
					{window("00:00-24:00", "sat,sun", "UTC"), Scope{Types: []notifier.Type{notifier.Failure, notifier.Info}, Tag: "home"}},
				},
				Digest: &Digest{Moment: monday},
				Rate:   []Rate{{Count: 10, Per: time.Minute}, {Count: 1, Per: 90 * time.Minute, Scope: Scope{Tag: "sms"}}},
			},
			[]string{
				"Repetitions within 10m are left out.",
				"22:00–07:00 (the server's time): held, then sent as one message (info, success, warning).",
				"00:00–24:00 Sat, Sun UTC: held, then sent as one message (info, failure; tag home).",
				"08:00 Mon Europe/Berlin: what came in is sent as one message (info, success, warning).",
				"At most 10 messages in 1m, the rest as one message; failures and openings of incidents are counted apart.",
				"At most 1 message in 1h30m, the rest as one message; failures and openings of incidents are counted apart (tag sms).",
			},
		},
		{
			&Rules{Escalate: &Escalate{After: []time.Duration{5 * time.Minute, 15 * time.Minute}, Repeat: 3}},
			[]string{
				"Destinations with a number are told in turn until somebody acknowledges, the next one after 5m, then 15m, in 3 rounds (failure).",
			},
		},
		{&Rules{Digest: &Digest{Every: 48 * time.Hour}}, []string{"What comes in within 2d is sent as one message."}},
	} {
		if got := tt.rules.Describe(); !slices.Equal(got, tt.want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
	}
}
