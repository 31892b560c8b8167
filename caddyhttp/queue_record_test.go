package caddyhttp

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/markup"
)

// storedText and storedState have a value in every field.
func storedText() queuedText {
	return queuedText{
		Title: "Disk full", Body: "Volume /data is at 91%\n", Type: notifier.Warning, Format: notifier.Markdown,
		Time: time.Date(2026, 11, 22, 10, 11, 12, 13, time.FixedZone("", 5400)), Hops: 300,
		Files:  []queuedFile{{Name: "a.txt", ContentType: "text/plain"}, {Name: "b", ContentType: ""}},
		Source: sourceHTTP, Key: "ops", Site: "site", Untrusted: true, Targets: 7, Client: true, Policy: "policy", DevicePolicy: "another", Foreign: true, Dialect: markup.DialectSlack,
		Trace:    traceOrigin{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", State: "vendor=value"},
		Incident: notifier.Incident{Name: "disk db1", State: notifier.Acknowledged, Alerts: "aaaabbbb ccccdddd", Ended: time.UnixMicro(1_790_000_000_123_456)}.For("ops", ""),
	}
}

func storedState() queuedState {
	return queuedState{
		Key: "ops", Source: sourceLog, Site: "site", Incident: "disk db1", Reported: true, Hash: "hash", URL: "json://host", Tags: []string{"a", "b"},
		Progress: []byte(`{"id":"x"}`),
	}
}

func checkFilled(t *testing.T, v any) {
	t.Helper()
	for s, i := reflect.ValueOf(v), 0; i < s.NumField(); i++ {
		if s.Field(i).IsZero() {
			t.Errorf("the test has no value for %s.%s", s.Type(), s.Type().Field(i).Name)
		}
	}
}

func TestQueuedRecords(t *testing.T) {
	text, state := storedText(), storedState()
	checkFilled(t, text)
	checkFilled(t, state)
	// A field of a later version comes first, in each type of the wire format.
	later := wire.AppendText(nil, 100, "later")
	later = wire.AppendNumber(later, 101, 1)
	later = protowire.AppendFixed64(protowire.AppendTag(later, 102, protowire.Fixed64Type), 1)
	for name, prefix := range map[string][]byte{"this version": nil, "a later version": later} {
		var gotText queuedText
		if err := gotText.decode(append(prefix, text.encode()...)); err != nil || !gotText.Time.Equal(text.Time) {
			t.Errorf("%s: %+v, %v", name, gotText, err)
		}
		_, want := text.Time.Zone()
		if _, offset := gotText.Time.Zone(); offset != want {
			t.Errorf("%s: the time is %s", name, gotText.Time)
		}
		if gotText.Time = text.Time; !reflect.DeepEqual(gotText, text) {
			t.Errorf("%s: %+v, want %+v", name, gotText, text)
		}
		var gotState queuedState
		if err := gotState.decode(append(prefix, state.encode()...)); err != nil || !reflect.DeepEqual(gotState, state) {
			t.Errorf("%s: %+v, %v, want %+v", name, gotState, err, state)
		}
	}
}

func TestQueuedResults(t *testing.T) {
	text := "the service answered 503 Service Unavailable"
	want := api.Result{
		Service: "JSON", Destination: "json://host/", Tags: []string{"a", ""}, Status: notifier.Failed, Attempts: 3, ElapsedMS: 77, Error: &text, Optional: true,
		Rule: notifier.RuleSuperseded, By: "id",
	}
	until := want
	until.Until, until.Step, until.Next = new(time.Time), 2, new(time.Time) // they are those of the job
	checkFilled(t, until)
	empty := ""
	for _, want := range []api.Result{want, {Tags: []string{}}, {Tags: []string{}, Error: &empty}} {
		if got := decodeResult(appendResult(nil, &want)); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestQueuedSummary(t *testing.T) {
	want := queuedSummary{"site", "disk db1", "ops", "grafana", notifier.Warning, "known", queuedChains{Chains: [][][]int{{{0, 2}, {1}}, {{3}, {4, 5}}}, Optional: []int{0, 4}}}
	var got queuedSummary
	if err := got.decode(want.encode()); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}

func TestDamagedQueuedRecords(t *testing.T) {
	state := storedState()
	whole := state.encode()
	if err := new(queuedState).decode(whole[:len(whole)-1]); err == nil {
		t.Error("a record that ends too early is decoded")
	}
	if err := new(queuedText).decode(wire.AppendText(nil, textTime, "no time")); err == nil {
		t.Error("a record without a valid time is decoded")
	}
}

// TestTries checks that a stored result has the last attempts of its delivery.
func TestTries(t *testing.T) {
	failed, delivered := notifier.Result{Service: "JSON", Err: errors.New("the service answered 503")}, notifier.Result{Service: "JSON"}
	if got := decodeTries(appendTry(resultOf(delivered), nil, delivered)); got != nil {
		t.Errorf("a success at once has the attempts %v", got)
	}
	var stored []byte
	for range maxTries + 5 {
		stored = appendTry(resultOf(failed), stored, failed)
	}
	stored = appendTry(resultOf(delivered), stored, delivered)
	got := decodeTries(stored)
	if len(got) != maxTries || got[0].Error != "the service answered 503" || got[maxTries-1].Error != "" || time.Since(got[0].At) > time.Hour {
		t.Errorf("%+v", got)
	}
	if r := decodeResult(stored); r.Service != "JSON" || r.Error != nil {
		t.Errorf("the result is %+v", r)
	}
}
