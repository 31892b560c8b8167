package queued

import (
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestTries checks that a stored result has the last attempts of its delivery.
func TestTries(t *testing.T) {
	failed, delivered := notifier.Result{Service: "JSON", Err: errors.New("the service answered 503")}, notifier.Result{Service: "JSON"}
	result := func(r notifier.Result) []byte { return AppendResult(nil, r) }
	if got := Tries(AppendTry(result(delivered), nil, delivered)); got != nil {
		t.Errorf("a success at once has the attempts %v", got)
	}
	var stored []byte
	for range maxTries + 5 {
		stored = AppendTry(result(failed), stored, failed)
	}
	stored = AppendTry(result(delivered), stored, delivered)
	got := Tries(stored)
	if len(got) != maxTries || got[0].Error != "the service answered 503" || got[maxTries-1].Error != "" || time.Since(got[0].At) > time.Hour {
		t.Errorf("%+v", got)
	}
	if r := DecodeResult(stored); r.Service != "JSON" || r.Error != nil {
		t.Errorf("the result is %+v", r)
	}
	if got := Tries(stored[:len(stored)-1]); len(got) != maxTries-1 {
		t.Errorf("a damaged result has %d attempts", len(got))
	}
}

// TestStoredTries checks that tries stored by earlier versions can be read, and that this one
// stores the same.
func TestStoredTries(t *testing.T) {
	const stored = "\n\x04JSONZ#\b\x80\x80\xbf\xb3\xa7\xc0\xae\x03\x12\x18the service answered 503Z\t\b\x8a\x9c\xdb\xec\xa7\xc0\xae\x03"
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		failed, delivered := notifier.Result{Service: "JSON", Err: errors.New("the service answered 503")}, notifier.Result{Service: "JSON"}
		b := AppendTry(AppendResult(nil, failed), nil, failed)
		time.Sleep(time.Minute + 5*time.Microsecond)
		if b = AppendTry(AppendResult(nil, delivered), b, delivered); string(b) != stored {
			t.Errorf("tries are stored as\n%q\nbut queues that exist have\n%q", b, stored)
		}
		want := []Try{{time.UnixMicro(begin.UnixMicro()), "the service answered 503"}, {time.UnixMicro(time.Now().UnixMicro()), ""}}
		if got := Tries([]byte(stored)); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}
