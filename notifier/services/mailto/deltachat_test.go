package mailto

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// TestDeltaChat sends messages and reads the mails as Delta Chat does.
func TestDeltaChat(t *testing.T) {
	_, jo, _ := pgpTestKey(t, "jo@example.org")
	me, _, private := pgpTestKey(t, "me@example.com")
	pub, prv := "&pgppub="+url.QueryEscape(jo), "&pgpprv="+url.QueryEscape(private)
	for _, c := range []struct {
		name, message, rest      string
		kind, subject, body, key string
	}{
		{
			"to itself", "plain", "", "plain", "Chat: Disk almost full Volume /data is at 91% on host-7",
			"Disk almost full\r\nVolume /data is at 91% on host-7", "",
		},
		{
			"HTML is read as text", "html", "/jo@example.org?format=html", "plain",
			"Chat: Backup Nightly All 12 volumes & 3 sites saved", "Backup", "",
		},
		{"a long text", "long", "/jo@example.org", "plain", "Chat: Disk almost full Volume /data is at 91% on host-7 ...", "", ""},
		{
			"with files", "attach", "/jo@example.org", "mixed(plain, plain, png)",
			"Chat: With files see attached", "With files\r\nsee attached", "",
		},
		{"an incident is no thread", "open", "/jo@example.org", "plain", "", "", ""},
		{"signed", "plain", "/jo@example.org?pgp=sign" + prv, "signed(plain, pgp-signature)", "Chat:", "", "me@example.com"},
		{"encrypted", "plain", "/jo@example.org?pgp=encrypt" + pub, "encrypted(pgp-encrypted, octet-stream)", "Chat: Encrypted message", "", ""},
		{
			"encrypted and signed", "plain", "/jo@example.org?pgp=encrypt" + pub + prv,
			"encrypted(pgp-encrypted, octet-stream)", "Chat: Encrypted message", "", "me@example.com",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startMail(t, &mailServer{})
			r := servicetest.Send(t, servicetest.NewSender(t), s.url("deltachat", "me", c.rest), servicetest.Message(t, c.message), mailTime)
			got := s.got()
			if r.Err != nil || len(got) != 1 {
				t.Fatalf("%d mails, the error %v", len(got), r.Err)
			}
			p := parseMail(t, got[0].data)
			if p.kind != c.kind || p.header.Get("Chat-Version") != "1.0" || p.header.Get("References") != "" {
				t.Errorf("%s: %v", p.kind, p.header)
			}
			if subject := p.header.Get("Subject"); c.subject != "" && subject != c.subject {
				t.Errorf("subject %q", subject)
			}
			if !strings.HasPrefix(p.parts[0].body, c.body) {
				t.Errorf("body %q", p.parts[0].body)
			}
			checkAutocrypt(t, p.header.Get("Autocrypt"), c.key, me)
		})
	}
}

// checkAutocrypt checks that a field has the public part of a key and its address, or
// that it is empty if address is.
func checkAutocrypt(t *testing.T, field, address string, key *openpgp.Entity) {
	t.Helper()
	rest, found := strings.CutPrefix(field, "addr="+address+"; keydata=")
	if address == "" {
		if field != "" {
			t.Errorf("Autocrypt: %s", field)
		}
		return
	}
	data, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(rest, " ", ""))
	if !found || err != nil {
		t.Fatalf("%q: %v", field, err)
	}
	keys, err := openpgp.ReadKeyRing(strings.NewReader(string(data)))
	if err != nil || len(keys) != 1 || keys[0].PrivateKey != nil || keys[0].PrimaryKey.KeyId != key.PrimaryKey.KeyId {
		t.Errorf("%d keys: %v", len(keys), err)
	}
}

// TestDeltaChatOfClients checks that a client cannot name the files of keys.
func TestDeltaChatOfClients(t *testing.T) {
	for _, param := range []string{"pgppub", "pgpkey", "pgpprv"} {
		if _, err := notifier.Parse("deltachats://me:pw@example.com?"+param+"=/etc/passwd", nil); err == nil ||
			strings.Contains(err.Error(), "passwd") {
			t.Errorf("%s: %v", param, err)
		}
	}
}
