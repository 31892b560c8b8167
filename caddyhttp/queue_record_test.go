package caddyhttp

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// storedText and storedState have a value in every field.
func storedText() queuedText {
	return queuedText{
		Title: "Disk full", Body: "Volume /data is at 91%\n", Type: notifier.Warning, Format: notifier.Markdown,
		Time: time.Date(2026, 11, 22, 10, 11, 12, 13, time.FixedZone("", 5400)), Hops: 300,
		Files:  []queuedFile{{Name: "a.txt", ContentType: "text/plain"}, {Name: "b", ContentType: ""}},
		Source: sourceHTTP, Key: "ops", Untrusted: true, Targets: 7, Client: true, Policy: "policy",
	}
}

func storedState() queuedState {
	return queuedState{
		Key: "ops", Source: sourceLog, Reported: true, Hash: "hash", URL: "json://host", Tags: []string{"a", "b"},
		Progress: json.RawMessage(`{"id":"x"}`),
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
	later := appendText(nil, 100, "later")
	later = appendNumber(later, 101, 1)
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

// Earlier builds stored JSON.
func TestQueuedRecordsOfEarlierBuilds(t *testing.T) {
	var text queuedText
	err := text.decode([]byte(`{"title":"Disk full","body":"b","type":"warning","format":"markdown","time":"2026-11-22T10:11:12.000000013+01:30","hops":300,` +
		`"files":[{"name":"a.txt","content_type":"text/plain"},{"name":"b","content_type":""}],"source":"http","key":"ops","untrusted":true,"targets":7,"client":true,"policy":"policy"}`))
	want := storedText()
	want.Body = "b"
	if !text.Time.Equal(want.Time) {
		t.Errorf("the time is %s", text.Time)
	}
	if text.Time = want.Time; err != nil || !reflect.DeepEqual(text, want) {
		t.Errorf("%+v, %v, want %+v", text, err, want)
	}
	var state queuedState
	err = state.decode([]byte(`{"key":"ops","source":"log","told":true,"hash":"hash","url":"json://host","tags":["a","b"],"progress":{"id":"x"}}`))
	if err != nil || !reflect.DeepEqual(state, storedState()) {
		t.Errorf("%+v, %v, want %+v", state, err, storedState())
	}
}

func TestDamagedQueuedRecords(t *testing.T) {
	state := storedState()
	whole := state.encode()
	if err := new(queuedState).decode(whole[:len(whole)-1]); err == nil {
		t.Error("a record that ends too early is decoded")
	}
	if err := new(queuedText).decode(appendText(nil, 5, "no time")); err == nil {
		t.Error("a record without a valid time is decoded")
	}
	if err := new(queuedText).decode([]byte(`{"title":`)); err == nil {
		t.Error("a record with half a JSON value is decoded")
	}
}
