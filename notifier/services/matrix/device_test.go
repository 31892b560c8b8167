package matrix

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"maunium.net/go/mautrix/crypto/attachment"
	"maunium.net/go/mautrix/crypto/goolm/account"
	megolm "maunium.net/go/mautrix/crypto/goolm/session"
	"maunium.net/go/mautrix/crypto/olm"
	"maunium.net/go/mautrix/id"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// reader is a device of a person in the room, with the receiving side of the
// library.
type reader struct {
	t        *testing.T
	user, id string
	account  *account.Account
	oneTime  []string // keys that nobody has claimed, as JSON
	sessions map[id.Curve25519]olm.Session
	groups   map[string]*megolm.MegolmInboundSession
}

func newReader(t *testing.T, user, device string) *reader {
	t.Helper()
	a, err := account.NewAccount()
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{
		t: t, user: user, id: device, account: a, sessions: map[id.Curve25519]olm.Session{},
		groups: map[string]*megolm.MegolmInboundSession{},
	}
	if err := a.GenOneTimeKeys(3); err != nil {
		t.Fatal(err)
	}
	keys, err := a.OneTimeKeys()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		text, err := json.Marshal(map[string]any{"signed_curve25519:" + name: r.sign(map[string]any{"key": keys[name].String()})})
		if err != nil {
			t.Fatal(err)
		}
		r.oneTime = append(r.oneTime, string(text))
	}
	return r
}

func (r *reader) sign(v map[string]any) map[string]any {
	r.t.Helper()
	text, err := canonical(v)
	if err != nil {
		r.t.Fatal(err)
	}
	signature, err := r.account.Sign(text)
	if err != nil {
		r.t.Fatal(err)
	}
	v["signatures"] = map[string]any{r.user: map[string]string{"ed25519:" + r.id: string(signature)}}
	return v
}

// deviceKeys returns the keys of the device, as a server has them.
func (r *reader) deviceKeys() map[string]any {
	r.t.Helper()
	d := device{ID: r.id, User: r.user, account: r.account}
	keys, err := d.deviceKeys()
	if err != nil {
		r.t.Fatal(err)
	}
	keys["unsigned"] = map[string]string{"device_display_name": "not signed"}
	return keys
}

// take reads a message to the device, with the key for a room.
func (r *reader) take(sender string, keys map[string]string, text json.RawMessage) {
	r.t.Helper()
	var message struct {
		Algorithm  string        `json:"algorithm"`
		Sender     id.Curve25519 `json:"sender_key"`
		Ciphertext map[string]struct {
			Type id.OlmMsgType `json:"type"`
			Body string        `json:"body"`
		} `json:"ciphertext"`
	}
	if err := json.Unmarshal(text, &message); err != nil {
		r.t.Fatal(err)
	}
	signing, identity, err := r.account.IdentityKeys()
	if err != nil {
		r.t.Fatal(err)
	}
	own, ok := message.Ciphertext[identity.String()]
	if !ok || message.Algorithm != algorithmOlm {
		r.t.Fatalf("the message is not for %s: %s", r.id, text)
	}
	opened := r.sessions[message.Sender]
	if opened == nil {
		if opened, err = r.account.NewInboundSessionFrom(&message.Sender, own.Body); err != nil {
			r.t.Fatal(err)
		}
		if err := r.account.RemoveOneTimeKeys(opened); err != nil {
			r.t.Fatal(err)
		}
		r.sessions[message.Sender] = opened
	}
	plain, err := opened.Decrypt(own.Body, own.Type)
	if err != nil {
		r.t.Fatalf("%s cannot decrypt the key: %v", r.id, err)
	}
	var event struct {
		Type          string            `json:"type"`
		Sender        string            `json:"sender"`
		Recipient     string            `json:"recipient"`
		Keys          map[string]string `json:"keys"`
		RecipientKeys map[string]string `json:"recipient_keys"`
		Content       map[string]string `json:"content"`
	}
	if err := json.Unmarshal(plain, &event); err != nil {
		r.t.Fatal(err)
	}
	if event.Type != "m.room_key" || event.Sender != sender ||
		event.Recipient != r.user || event.RecipientKeys["ed25519"] != signing.String() ||
		event.Keys["ed25519"] != keys["ed25519"] || message.Sender.String() != keys["curve25519"] ||
		event.Content["algorithm"] != algorithmMegolm {
		r.t.Errorf("the key is not bound to its sender and recipient: %s", plain)
	}
	group, err := megolm.NewMegolmInboundSession([]byte(event.Content["session_key"]))
	if err != nil {
		r.t.Fatal(err)
	}
	if group.ID().String() != event.Content["session_id"] {
		r.t.Error("the session has another id")
	}
	r.groups[event.Content["room_id"]+event.Content["session_id"]] = group
}

// read decrypts an event of a room. It returns nil if the device has no key.
func (r *reader) read(room string, text string) map[string]any {
	r.t.Helper()
	var event struct {
		Session    string `json:"session_id"`
		Ciphertext string `json:"ciphertext"`
	}
	if err := json.Unmarshal([]byte(text), &event); err != nil {
		r.t.Fatal(err)
	}
	group := r.groups[room+event.Session]
	if group == nil {
		return nil
	}
	plain, _, err := group.Decrypt([]byte(event.Ciphertext))
	if err != nil {
		return nil
	}
	var out struct {
		Type    string         `json:"type"`
		Room    string         `json:"room_id"`
		Content map[string]any `json:"content"`
	}
	if err := json.Unmarshal(plain, &out); err != nil {
		r.t.Fatal(err)
	}
	if out.Type != "m.room.message" || out.Room != room {
		r.t.Errorf("the event is not bound to its room: %s", plain)
	}
	return out.Content
}

const secretRoom = "!room:example.org"

// secretServer is a homeserver with one encrypted room.
type secretServer struct {
	t       *testing.T
	devices []*reader
	forged  string                    // id of a device whose keys are not signed
	ours    map[string]map[string]any // our devices' keys, by id
	logins  int
	shares  int
	events  []string
	files   map[string]string
	clear   []string // what must not be here
}

func (s *secretServer) answer(q *http.Request, body string) (int, string) {
	text := func(v any) (int, string) {
		out, err := json.Marshal(v)
		if err != nil {
			s.t.Error(err)
		}
		return 200, string(out)
	}
	path := strings.TrimPrefix(q.URL.Path, "/_matrix/client/v3/")
	switch {
	case path == "login":
		s.logins++
		return text(map[string]string{"access_token": "token", "user_id": "@gate:example.org", "device_id": fmt.Sprintf("GATE%d", s.logins)})
	case path == "account/whoami":
		return text(map[string]string{"user_id": "@gate:example.org", "device_id": "ELEMENT"})
	case strings.HasPrefix(path, "join/"):
		return text(map[string]string{"room_id": secretRoom})
	case path == "rooms/"+secretRoom+"/state/m.room.encryption":
		return text(map[string]string{"algorithm": algorithmMegolm})
	case path == "rooms/"+secretRoom+"/members":
		members := []any{map[string]any{"state_key": "@gone:example.org", "content": map[string]string{"membership": "ban"}}}
		for _, user := range []string{"@gate:example.org", "@bob:example.org"} {
			members = append(members, map[string]any{"state_key": user, "content": map[string]string{"membership": "join"}})
		}
		return text(map[string]any{"chunk": members})
	case path == "keys/query":
		all := map[string]map[string]any{}
		add := func(user, id string, keys map[string]any) {
			if all[user] == nil {
				all[user] = map[string]any{}
			}
			all[user][id] = keys
		}
		for id, keys := range s.ours {
			add("@gate:example.org", id, keys)
		}
		for _, d := range s.devices {
			keys := d.deviceKeys()
			if d.id == s.forged {
				keys["algorithms"] = []string{"changed by the server"}
			}
			add(d.user, d.id, keys)
		}
		return text(map[string]any{"device_keys": all})
	case path == "keys/upload":
		var in struct {
			Keys json.RawMessage `json:"device_keys"`
		}
		var keys map[string]any
		if json.Unmarshal([]byte(body), &in) != nil || json.Unmarshal(in.Keys, &keys) != nil {
			s.t.Errorf("keys/upload: %s", body)
		}
		id, _ := keys["device_id"].(string)
		if _, ok := readPeer("@gate:example.org", id, in.Keys); !ok {
			s.t.Errorf("our keys are not signed: %s", in.Keys)
		}
		if s.ours[id] != nil {
			s.t.Error("the keys of a device are uploaded twice")
		}
		s.ours[id] = keys
		return 200, `{"one_time_key_counts": {}}`
	case path == "keys/claim":
		var in struct {
			Keys map[string]map[string]string `json:"one_time_keys"`
		}
		if err := json.Unmarshal([]byte(body), &in); err != nil {
			s.t.Error(err)
		}
		out := map[string]map[string]json.RawMessage{}
		for _, d := range s.devices {
			if in.Keys[d.user][d.id] == "" || len(d.oneTime) == 0 {
				continue
			}
			if out[d.user] == nil {
				out[d.user] = map[string]json.RawMessage{}
			}
			out[d.user][d.id], d.oneTime = json.RawMessage(d.oneTime[0]), d.oneTime[1:]
		}
		return text(map[string]any{"one_time_keys": out})
	case strings.HasPrefix(path, "sendToDevice/m.room.encrypted/"):
		s.shares++
		var in struct {
			Messages map[string]map[string]json.RawMessage `json:"messages"`
		}
		if err := json.Unmarshal([]byte(body), &in); err != nil {
			s.t.Error(err)
		}
		gate := fmt.Sprintf("GATE%d", s.logins)
		public, _ := s.ours[gate]["keys"].(map[string]any)
		keys := map[string]string{}
		for _, kind := range []string{"ed25519", "curve25519"} {
			keys[kind], _ = public[kind+":"+gate].(string)
		}
		for _, d := range s.devices {
			if message := in.Messages[d.user][d.id]; message != nil {
				d.take("@gate:example.org", keys, message)
			}
		}
	case strings.HasPrefix(path, "rooms/"+secretRoom+"/send/m.room.encrypted/"):
		s.events = append(s.events, body)
		return 200, `{"event_id": "$1"}`
	case q.URL.Path == "/_matrix/media/v3/upload":
		address := fmt.Sprintf("mxc://example.org/%d", len(s.files))
		s.files[address] = body
		return text(map[string]string{"content_uri": address})
	default:
		s.clear = append(s.clear, q.Method+" "+path)
	}
	return 200, "{}"
}

func newSecretServer(t *testing.T, devices ...*reader) *secretServer {
	return &secretServer{t: t, devices: devices, ours: map[string]map[string]any{}, files: map[string]string{}}
}

// send sends a message and returns the event with the text.
func (s *secretServer) send(sender *notifier.Sender, message, body string) (event string, r notifier.Result, records string) {
	s.t.Helper()
	m := servicetest.Message(s.t, message)
	m.Title, m.Body = "", body
	report := servicetest.Report(s.t, sender, "matrix://gate:pass@example.org/#room?e2ee=yes", m, 10*time.Second)
	for _, record := range report.Records {
		records += record.Text + "\n"
	}
	if len(s.clear) > 0 {
		s.t.Errorf("unexpected requests: %q", s.clear)
	}
	if len(s.events) > 0 {
		event = s.events[len(s.events)-1]
	}
	if strings.Contains(strings.Join(s.events, ""), body) {
		s.t.Error("an event has the text in clear")
	}
	return event, report.Results[0], records
}

func (r *reader) expect(event, want string) {
	r.t.Helper()
	if got, _ := r.read(secretRoom, event)["body"].(string); got != want {
		r.t.Errorf("%s reads %q, want %q", r.id, got, want)
	}
}

func TestEndToEnd(t *testing.T) {
	phone, laptop := newReader(t, "@bob:example.org", "PHONE"), newReader(t, "@bob:example.org", "LAPTOP")
	s := newSecretServer(t, phone)
	sender := servicetest.NewSenderOver(t, servicetest.API(s.answer))
	first, r, records := s.send(sender, "plain", "number one")
	if r.Err != nil || strings.Contains(records, "cannot read") {
		t.Fatal(r.Err, records)
	}
	phone.expect(first, "number one")
	second, _, _ := s.send(sender, "plain", "number two")
	phone.expect(second, "number two")
	if s.shares != 1 {
		t.Errorf("the key is shared %d times for one device", s.shares)
	}

	// A new device reads what comes from now on.
	s.devices = append(s.devices, laptop)
	third, _, _ := s.send(sender, "plain", "number three")
	phone.expect(third, "number three")
	laptop.expect(third, "number three")
	laptop.expect(second, "")

	// A device that has left reads nothing more.
	s.devices = []*reader{laptop}
	fourth, _, _ := s.send(sender, "plain", "number four")
	laptop.expect(fourth, "number four")
	phone.expect(fourth, "")

	// The key is changed after a hundred messages.
	shares := s.shares
	for i := range maxGroupMessages + 1 {
		event, _, _ := s.send(sender, "plain", fmt.Sprint("message ", i))
		laptop.expect(event, fmt.Sprint("message ", i))
	}
	if s.shares != shares+1 {
		t.Errorf("the key is changed %d times in %d messages", s.shares-shares, maxGroupMessages)
	}
	if s.logins != 1 || len(s.ours) != 1 {
		t.Errorf("%d logins and %d devices", s.logins, len(s.ours))
	}
}

// Keys that a device has not signed, and others than it had before, could be the
// server's.
func TestEndToEndForgery(t *testing.T) {
	phone, forged := newReader(t, "@bob:example.org", "PHONE"), newReader(t, "@bob:example.org", "FORGED")
	s := newSecretServer(t, phone, forged)
	s.forged = "FORGED"
	sender := servicetest.NewSenderOver(t, servicetest.API(s.answer))
	event, r, records := s.send(sender, "plain", "number one")
	if r.Err != nil || !strings.Contains(records, "1 of 2 devices in the encrypted room cannot read the message") {
		t.Errorf("%v: %s", r.Err, records)
	}
	phone.expect(event, "number one")
	forged.expect(event, "")

	changed := newReader(t, "@bob:example.org", "PHONE")
	s.devices, s.forged = []*reader{changed}, ""
	sent := len(s.events)
	if _, r, _ := s.send(sender, "plain", "number two"); r.Err == nil ||
		!strings.Contains(r.Err.Error(), "nobody in the encrypted room has a device") || len(s.events) != sent {
		t.Errorf("a device with other keys than before: %v", r.Err)
	}
}

// A one-time key that the device has not signed is not used.
func TestEndToEndForgedClaim(t *testing.T) {
	phone := newReader(t, "@bob:example.org", "PHONE")
	phone.oneTime = []string{`{"signed_curve25519:AA": {"key": "` + strings.Repeat("A", 43) + `", "signatures": {}}}`}
	s := newSecretServer(t, phone)
	if _, r, _ := s.send(servicetest.NewSenderOver(t, servicetest.API(s.answer)), "plain", "text"); r.Err == nil || len(s.events) > 0 {
		t.Errorf("%v, %d events", r.Err, len(s.events))
	}
}

func TestEndToEndFiles(t *testing.T) {
	phone := newReader(t, "@bob:example.org", "PHONE")
	s := newSecretServer(t, phone)
	if _, r, _ := s.send(servicetest.NewSenderOver(t, servicetest.API(s.answer)), "attach", "see these"); r.Err != nil || len(s.events) != 3 {
		t.Fatalf("%v, %d events", r.Err, len(s.events))
	}
	picture := phone.read(secretRoom, s.events[1])
	text, err := json.Marshal(picture["file"])
	if err != nil {
		t.Fatal(err)
	}
	var file attachment.EncryptedFile
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	stored := s.files[picture["file"].(map[string]any)["url"].(string)]
	data := []byte(stored)
	if err := file.DecryptInPlace(data); err != nil || string(data) != string(servicetest.Picture) ||
		stored == string(data) || picture["url"] != nil || picture["body"] != "graph.png" {
		t.Errorf("the picture is %q (%v): %v", data, err, picture)
	}
	phone.expect(s.events[2], "see these")
}

// The device survives a restart, and uses new keys for messages then. The access
// token of another program's device is refused: that program could no longer
// read its messages.
func TestEndToEndRestart(t *testing.T) {
	phone := newReader(t, "@bob:example.org", "PHONE")
	s := newSecretServer(t, phone)
	store := memoryStore{}
	for _, text := range []string{"number one", "number two"} {
		sender := servicetest.NewSenderOver(t, servicetest.API(s.answer))
		sender.KeepStates(store)
		event, r, _ := s.send(sender, "plain", text)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		// The sender has a new session with the device after a restart.
		phone.expect(event, text)
		phone.sessions = map[id.Curve25519]olm.Session{}
	}
	if s.logins != 1 || len(s.ours) != 1 || s.shares != 2 {
		t.Errorf("%d logins, %d devices, %d shares", s.logins, len(s.ours), s.shares)
	}

	s.ours["ELEMENT"] = map[string]any{"device_id": "ELEMENT"}
	for _, x := range []struct {
		store notifier.StateStore
		want  string
	}{{memoryStore{}, "belongs to a device that has keys of its own"}, {nil, "whose keys are not kept here"}} {
		sender := servicetest.NewSenderOver(t, servicetest.API(s.answer))
		sender.KeepStates(x.store)
		r := servicetest.Send(t, sender, "matrix://token@example.org/#room?e2ee=yes", servicetest.Message(t, "plain"), 10*time.Second)
		if r.Err == nil || !strings.Contains(r.Err.Error(), x.want) {
			t.Errorf("an access token: %v, want %q", r.Err, x.want)
		}
	}
}

// memoryStore is a [notifier.StateStore] for one goroutine.
type memoryStore map[string][]byte

func (m memoryStore) Load(_ context.Context, name string) ([]byte, error) { return m[name], nil }
func (m memoryStore) Store(_ context.Context, name string, data []byte) error {
	m[name] = data
	return nil
}
func (m memoryStore) Delete(_ context.Context, name string) error { delete(m, name); return nil }

// TestCanonical checks examples of the specification:
// https://spec.matrix.org/latest/appendices/#canonical-json.
func TestCanonical(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: `{}`,
		`{"one": 1, "two": "Two", "signatures": {}, "unsigned": {"a": 1}}`: `{"one":1,"two":"Two"}`,
		`{"b": "2", "a": {"d": [true, 1], "c": "<&>\u2028"}}`:              `{"a":{"c":"<&>` + "\u2028" + `","d":[true,1]},"b":"2"}`,
		`{"本": 2, "日": 1}`:          `{"日":1,"本":2}`,
		`{"a": "\u65E5"}`:           `{"a":"日"}`,
		`{"a": null}`:               `{"a":null}`,
		`{"a": -0, "b": 1e10}`:      `{"a":0,"b":10000000000}`,
		`{"ts": 9007199254740991}`:  `{"ts":9007199254740991}`,
		`{"ts": -9007199254740991}`: `{"ts":-9007199254740991}`,
	} {
		if got, err := canonical(json.RawMessage(text)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
	if _, err := canonical(json.RawMessage(`{"keys": {"a": 1, "a": 2}}`)); err == nil {
		t.Error("two values of one name are accepted")
	}
}
