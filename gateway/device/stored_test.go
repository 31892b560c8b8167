package device

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier/webpush"
)

// subscriptionAt returns a subscription with an endpoint, with the keys of the example in RFC 8291.
func subscriptionAt(t *testing.T, endpoint string) webpush.Subscription {
	t.Helper()
	var s webpush.Subscription
	s.Endpoint = endpoint
	s.Keys.P256DH = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
	s.Keys.Auth = "BTBZMqHH6r4Tts7J_aSIgg"
	if err := s.Parse(); err != nil {
		t.Fatal(err)
	}
	return s
}

// second is a time in the minute of the tests.
func second(n int) time.Time { return time.Date(2026, 3, 1, 12, 0, n, 0, time.UTC).Local() }

var (
	ops  = site.Place{Home: "site", Key: "ops"}
	told = uuid.MustParse("01890000-0000-7000-8000-000000000001")
)

// stored is a record that can be stored.
type stored interface{ encode() []byte }

func (l *List) encode() []byte       { return wire.Append(nil, l, (*List).fields) }
func (x *Invitation) encode() []byte { return wire.Append(nil, x, (*Invitation).fields) }
func (x *Receipt) encode() []byte    { return wire.Append(nil, x, (*Receipt).fields) }
func (s *State) encode() []byte      { return wire.Append(nil, s, (*State).fields) }

func decode[T any](b []byte, fields func(*T, *wire.Codec)) (*T, error) {
	x := new(T)
	return x, wire.Decode(b, x, fields)
}

// example is a record, and how it is decoded.
type example struct {
	record stored
	decode func([]byte) (stored, error)
}

// examples returns a record of each kind, all of whose fields are set.
func examples(t *testing.T) map[string]example {
	t.Helper()
	list := &List{Place: ops, All: []Device{
		{
			ID: "id-1", Name: "Jo's phone", Granted: []string{"always", "1:oncall"}, Own: []string{"night"}, By: "jo",
			Created: second(0).Add(5 * time.Microsecond),
			secret:  sha256.Sum256([]byte("secret")), Subscription: subscriptionAt(t, "https://fcm.googleapis.com/1"),
		},
		{
			ID: "id-2", Name: "Tablet", Created: second(24 * 3600), secret: sha256.Sum256([]byte("other")),
			Subscription: subscriptionAt(t, "https://fcm.googleapis.com/2"),
		},
	}}
	return map[string]example{
		"list": {list, func(b []byte) (stored, error) { return decodeList(b) }},
		"invitation": {
			&Invitation{Place: ops, Tags: []string{"ops", "1:oncall"}, Until: second(24 * 3600).Add(5 * time.Microsecond)},
			func(b []byte) (stored, error) { return decode(b, (*Invitation).fields) },
		},
		"receipt": {
			&Receipt{
				Device: "id-1", Name: "Jo's phone", Place: ops, Message: told, Target: "target", Began: second(1), Sent: second(2), Received: second(3),
				Last: second(4), Checked: true,
			},
			func(b []byte) (stored, error) { return decode(b, (*Receipt).fields) },
		},
		"state": {
			&State{ID: "id-1", Name: "Jo's phone", Place: ops, Created: second(0), Sent: second(2), Seen: second(3), Missing: 300, Told: true},
			func(b []byte) (stored, error) { return decode(b, (*State).fields) },
		},
	}
}

// TestStored checks that records of earlier versions can be read, and that a record is read as it
// was stored. The file must not change, because gateways have stored such records.
func TestStored(t *testing.T) {
	file, err := os.ReadFile("testdata/records.txt")
	if err != nil {
		t.Fatal(err)
	}
	records := map[string][]byte{}
	for line := range strings.Lines(string(file)) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		records[name] = b
	}
	for name, x := range examples(t) {
		for _, b := range [][]byte{records[name], x.record.encode()} {
			got, err := x.decode(b)
			if err != nil || !reflect.DeepEqual(got, x.record) {
				t.Errorf("%s: %x is %+v, %v; want %+v", name, b, got, err, x.record)
			}
		}
		if got := x.record.encode(); len(got) != len(records[name]) {
			t.Errorf("%s: stored as %x, which is not as long as before", name, got)
		}
	}
}

// TestDamaged checks that a record that was cut is an error, unless it ends between two
// fields.
func TestDamaged(t *testing.T) {
	for name, x := range examples(t) {
		b := x.record.encode()
		refused := 0
		for n := range len(b) {
			if got, err := x.decode(b[:n]); err != nil {
				refused++
			} else if bytes.Equal(got.encode(), b) {
				t.Errorf("%s: the first %d of %d bytes are the whole", name, n, len(b))
			}
		}
		if refused < len(b)/2 {
			t.Errorf("%s: %d of %d cut records are refused", name, refused, len(b))
		}
	}
	list := &List{Place: ops, All: []Device{{ID: "id-1", Name: "Jo's phone"}}}
	if got, err := decodeList(list.encode()); err == nil || got.Place != ops || !strings.Contains(err.Error(), "id-1") {
		t.Errorf("a device without a subscription: %+v, %v", got, err)
	}
}

// TestNothingStored checks what an empty record is.
func TestNothingStored(t *testing.T) {
	l, err1 := decodeList(nil)
	x, err2 := decode(nil, (*Invitation).fields)
	r, err3 := decode(nil, (*Receipt).fields)
	s, err4 := decode(nil, (*State).fields)
	if err := errors.Join(err1, err2, err3, err4); err != nil || len(l.All) != 0 || x.check(site.Place{}, second(0)) == nil || r.answered() ||
		s.ID != "" {
		t.Errorf("%+v, %+v, %+v, %+v, %v", l, x, r, s, err)
	}
}
