package matrix

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"maunium.net/go/mautrix/crypto/goolm/account"
	"maunium.net/go/mautrix/crypto/olm"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// Algorithms of end-to-end encryption.
// See https://spec.matrix.org/latest/client-server-api/#end-to-end-encryption.
const (
	algorithmOlm    = "m.olm.v1.curve25519-aes-sha2"
	algorithmMegolm = "m.megolm.v1.aes-sha2"
)

// device is our device of a session. Its JSON survives a restart: our identity, and the keys of the
// devices that we have met. The sessions with them are not stored, because two processes must not
// use the same position of a session.
type device struct {
	ID       string           `json:"id"`
	User     string           `json:"user"`
	Account  []byte           `json:"account"` // our keys
	Uploaded bool             `json:"uploaded"`
	Peers    map[string]*peer `json:"peers"` // by their keys

	account *account.Account
	groups  map[string]*group // by the ids of rooms
}

// peer is a device of somebody in a room.
type peer struct {
	User     string `json:"user"`
	Device   string `json:"device"`
	Identity string `json:"identity"` // its key on Curve25519
	Signing  string `json:"signing"`  // its key on Ed25519

	session olm.Session // nil until it is needed
}

func (p *peer) key() string { return p.User + " " + p.Device }

// savedDevice is the name of the device that is kept over a restart.
const savedDevice = "device"

// pickleKey is the key of the library's own encryption of what it stores. The gateway encrypts its
// state as a whole.
var pickleKey = []byte("matrix")

// ourDevice returns our device, with its keys on the server. The caller has
// filled s.crypto.
func (s *session) ourDevice(ctx context.Context, c *notifier.Client) (*device, error) {
	if s.device != nil && s.device.Uploaded {
		return s.device, nil
	}
	if s.user == "" || s.deviceID == "" {
		return nil, &notifier.URLError{
			Problem: "the room is encrypted, and the server does not tell the id of our device, so nothing can be encrypted",
			Fix:     "send to a room without encryption, or add e2ee=no to the URL if the servers may read the messages",
		}
	}
	d := s.device
	if saved := new(device); d == nil && c.LoadState(ctx, savedDevice, saved) && saved.ID == s.deviceID && saved.User == s.user {
		var err error
		if saved.account, err = account.AccountFromPickled(saved.Account, pickleKey); err == nil {
			d = saved
			d.groups = map[string]*group{}
		}
	}
	if d == nil {
		var err error
		if d, err = s.newDevice(ctx, c); err != nil {
			return nil, err
		}
	}
	s.device = d
	if d.Uploaded {
		return d, nil
	}
	keys, err := d.deviceKeys()
	if err != nil {
		return nil, err
	}
	if err := s.call(ctx, c, "POST", map[string]any{"device_keys": keys}, nil, "keys", "upload"); err != nil {
		return nil, fmt.Errorf("uploading our keys: %w", err)
	}
	d.Uploaded = true
	c.SaveState(ctx, savedDevice, d)
	return d, nil
}

// newDevice returns a device with new keys. It is an error if the device has
// keys already: they belong to another program, which could no longer read its
// messages.
func (s *session) newDevice(ctx context.Context, c *notifier.Client) (*device, error) {
	if s.foreign && !c.KeepsState() {
		return nil, &notifier.URLError{
			Problem: "the room is encrypted, and an access token belongs to one device, whose keys are not kept here",
			Fix:     "write the user and the password into the URL, or put the URL into a file of the machine that sends",
		}
	}
	known, err := s.queryKeys(ctx, c, map[string][]string{s.user: {s.deviceID}})
	if err != nil {
		return nil, fmt.Errorf("asking for the keys of our device: %w", err)
	}
	if known[s.user][s.deviceID] != nil {
		return nil, &notifier.URLError{
			Problem: "the access token belongs to a device that has keys of its own, " +
				"such as the device of Element, or of this program before it lost its storage",
			Fix: "write the user and the password into the URL, or the token of a new session",
		}
	}
	d := &device{ID: s.deviceID, User: s.user, Peers: map[string]*peer{}, groups: map[string]*group{}}
	if d.account, err = account.NewAccount(); err != nil {
		return nil, fmt.Errorf("making keys: %w", err)
	}
	if d.Account, err = d.account.Pickle(pickleKey); err != nil {
		return nil, fmt.Errorf("making keys: %w", err)
	}
	c.SaveState(ctx, savedDevice, d)
	return d, nil
}

// deviceKeys returns our public keys, signed.
func (d *device) deviceKeys() (map[string]any, error) {
	signing, identity, err := d.account.IdentityKeys()
	if err != nil {
		return nil, fmt.Errorf("reading our keys: %w", err)
	}
	keys := map[string]any{
		"user_id": d.User, "device_id": d.ID, "algorithms": []string{algorithmOlm, algorithmMegolm},
		"keys": map[string]string{"curve25519:" + d.ID: identity.String(), "ed25519:" + d.ID: signing.String()},
	}
	text, err := canonical(keys)
	if err != nil {
		return nil, err
	}
	signature, err := d.account.Sign(text)
	if err != nil {
		return nil, fmt.Errorf("signing our keys: %w", err)
	}
	keys["signatures"] = map[string]any{d.User: map[string]string{"ed25519:" + d.ID: string(signature)}}
	return keys, nil
}

// canonical returns a value as canonical JSON, without the parts that are not
// signed. See https://spec.matrix.org/latest/appendices/#signing-json. Matrix
// sorts names by their code points and RFC 8785 by UTF-16, which is the same for
// all names without characters above U+FFFF.
func canonical(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	delete(fields, "signatures")
	delete(fields, "unsigned")
	if text, err = json.Marshal(fields); err != nil {
		return nil, err
	}
	out := jsontext.Value(text)
	if err := out.Canonicalize(); err != nil {
		return nil, err
	}
	return out, nil
}

// isSigned reports whether JSON is signed with a key on Ed25519 of a device.
func isSigned(text json.RawMessage, user, device, key string) bool {
	var signed struct {
		Signatures map[string]map[string]string `json:"signatures"`
	}
	message, err := canonical(text)
	if err != nil || json.Unmarshal(text, &signed) != nil {
		return false
	}
	public, err := base64.RawStdEncoding.DecodeString(key)
	if err != nil || len(public) != ed25519.PublicKeySize {
		return false
	}
	signature, err := base64.RawStdEncoding.DecodeString(signed.Signatures[user]["ed25519:"+device])
	return err == nil && ed25519.Verify(public, message, signature)
}

// queryKeys returns the keys of users' devices, as the server has them. An empty
// list of devices means all of the user.
func (s *session) queryKeys(
	ctx context.Context, c *notifier.Client, users map[string][]string,
) (map[string]map[string]json.RawMessage, error) {
	var answer struct {
		Keys map[string]map[string]json.RawMessage `json:"device_keys"`
	}
	err := s.call(ctx, c, "POST", map[string]any{"device_keys": users}, &answer, "keys", "query")
	return answer.Keys, err
}

// peersOf returns the devices of users, except ours, and the number of devices with unusable keys:
// keys that the device has not signed, or that differ from its earlier ones.
func (s *session) peersOf(ctx context.Context, c *notifier.Client, d *device, users []string) (peers []*peer, unusable int, err error) {
	met := false
	for some := range slices.Chunk(users, usersAtOnce) {
		asked := map[string][]string{}
		for _, user := range some {
			asked[user] = []string{}
		}
		answer, err := s.queryKeys(ctx, c, asked)
		if err != nil {
			return nil, 0, fmt.Errorf("asking for the keys of the people in the room: %w", err)
		}
		err = c.Compute(ctx, func() error {
			for _, user := range some {
				for id, text := range answer[user] {
					p, ok := d.peerOf(user, id, text)
					switch {
					case user == d.User && id == d.ID:
						continue
					case !ok:
						unusable++
						continue
					case d.Peers[p.key()] == nil:
						d.Peers[p.key()], met = p, true
					}
					peers = append(peers, p)
				}
			}
			return nil
		})
		if err != nil {
			return nil, 0, err
		}
	}
	if met {
		c.SaveState(ctx, savedDevice, d)
	}
	slices.SortFunc(peers, func(a, b *peer) int { return slices.Compare([]string{a.User, a.Device}, []string{b.User, b.Device}) })
	return peers, unusable, nil
}

// usersAtOnce is the maximum number of users whose keys one request asks for,
// so that the answer is not too long.
const usersAtOnce = 50

// peerOf returns a device with its keys, and reports whether they are usable.
func (d *device) peerOf(user, id string, text json.RawMessage) (p *peer, ok bool) {
	p, ok = readPeer(user, id, text)
	if known := d.Peers[p.key()]; ok && known != nil {
		return known, known.Identity == p.Identity && known.Signing == p.Signing
	}
	return p, ok
}

// readPeer reads the keys of a device, and reports whether it has signed them
// itself.
func readPeer(user, id string, text json.RawMessage) (*peer, bool) {
	var keys struct {
		User   string            `json:"user_id"`
		Device string            `json:"device_id"`
		Keys   map[string]string `json:"keys"`
	}
	err := json.Unmarshal(text, &keys)
	p := &peer{User: user, Device: id, Identity: keys.Keys["curve25519:"+id], Signing: keys.Keys["ed25519:"+id]}
	return p, err == nil && keys.User == user && keys.Device == id && p.Identity != "" && isSigned(text, user, id, p.Signing)
}
