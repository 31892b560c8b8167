package api

import (
	"net/http"
	"testing"
	"time"
)

func TestParsePrefer(t *testing.T) {
	for _, tt := range []struct {
		headers []string
		want    Preference
		applied string
	}{
		{nil, Preference{}, "respond-async"},
		{[]string{"respond-async"}, Preference{Async: true}, "respond-async"},
		{[]string{"Respond-Async, wait=10"}, Preference{true, 10 * time.Second}, "respond-async, wait=10"},
		{[]string{`wait="5"; x=y`, "wait=7"}, Preference{true, 5 * time.Second}, "respond-async, wait=5"},
		{[]string{"wait = 0"}, Preference{Async: true}, "respond-async"},
		{[]string{"wait=3600"}, Preference{true, time.Minute}, "respond-async, wait=60"},
		{[]string{"wait=-1, wait=x, wait, wait=99999999999, return=minimal"}, Preference{}, "respond-async"},
		{[]string{`handling="respond-async, wait=4"`}, Preference{}, "respond-async"},
	} {
		p := ParsePrefer(http.Header{"Prefer": tt.headers})
		if p != tt.want || p.applied() != tt.applied {
			t.Errorf("%q: %+v %q, want %+v %q", tt.headers, p, p.applied(), tt.want, tt.applied)
		}
	}
}
