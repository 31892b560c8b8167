package api

import (
	"encoding/json"
	"reflect"
	"testing"
	"testing/quick"

	"github.com/caddy-notify/caddy-notify/notifier"
)

func TestResultAppendJSON(t *testing.T) {
	same := func(r Result) bool {
		want, err := json.Marshal(&r)
		got := r.AppendJSON(nil)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s, want %s, %v", got, want, err)
		}
		return true
	}
	text := "a \"text\" with \\ <tags> & \x00 control\n characters, \u2028, bytes \xff, and ä"
	same(Result{})
	same(Result{Service: "JSON", Destination: "json://host/", Tags: []string{}, Status: notifier.Delivered, Attempts: 2, ElapsedMS: 1234})
	same(Result{Service: text, Destination: text, Tags: []string{text, ""}, Status: notifier.Status(text), Error: &text, Optional: true})
	if err := quick.Check(same, nil); err != nil {
		t.Error(err)
	}
	// A new field must be added to AppendJSON.
	if n := reflect.TypeFor[Result]().NumField(); n != 8 {
		t.Errorf("Result has %d fields", n)
	}
}
