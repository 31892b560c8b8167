package mailto

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"

	"github.com/caddy-notify/caddy-notify/internal/pgptest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/mail"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// number returns a number of so many bits as OpenPGP writes it.
func number(bits int) []byte {
	b := make([]byte, 2+(bits+7)/8)
	b[0], b[1] = byte(bits>>8), byte(bits)
	if bits > 0 {
		b[2] = 1 << ((bits - 1) % 8)
	}
	return b
}

// packet returns a packet of a key ring (RFC 9580, section 4.2).
func packet(tag byte, content ...[]byte) []byte {
	body := bytes.Join(content, nil)
	n := len(body)
	return append([]byte{0xc0 | tag, 0xff, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, body...)
}

// head is the beginning of a key in a version, with an algorithm.
func head(version, algorithm byte) []byte {
	h := []byte{version, 0, 0, 0, 0, algorithm}
	if version > 4 {
		h = append(h, 0, 0, 0, 0)
	}
	return h
}

// TestKeyPackets checks that keys are refused by the sizes of their numbers and
// their algorithms, without computing with them.
func TestKeyPackets(t *testing.T) {
	t.Parallel()
	e := number(17)
	curve := []byte{3, 1, 2, 3}
	plain, derivation := []byte{0}, []byte{3, 1, 8, 7}
	dsa := func(bits int) [][]byte {
		return [][]byte{head(4, 17), number(bits), number(256), number(bits), number(bits)}
	}
	const dlog, notPGP = "DSA or ElGamal key, and those in clients' URLs are refused", "is not an OpenPGP key"
	for name, tt := range map[string]struct {
		data             []byte
		operator, client string // the errors
	}{
		"RSA, 8192 bits":          {packet(tagPublic, head(4, 1), number(8192), e), "", ""},
		"RSA, 8193 bits":          {packet(tagPublic, head(4, 1), number(8193), e), "at most 8192", ""},
		"RSA, 32768 bits":         {packet(tagPublic, head(4, 1), number(32768), e), "at most 8192", ""},
		"RSA, a large exponent":   {packet(tagPublic, head(4, 1), number(2048), number(32768)), "at most 8192", ""},
		"RSA of version 6":        {packet(tagPublic, head(6, 1), number(8193), e), "at most 8192", ""},
		"RSA for signatures only": {packet(tagPublic, head(4, 3), number(8193), e), "at most 8192", ""},
		"private RSA, 4096 bits": {
			packet(tagPrivate, head(4, 1), number(4096), e, plain, number(4096), number(2048), number(2048), number(2048)),
			"", "",
		},
		"private RSA, 4104 bits": {
			packet(tagPrivate, head(4, 1), number(4104), e, plain, number(4096), number(2048), number(2048), number(2048)),
			"", "at most 4096",
		},
		"private RSA, large primes": {
			packet(tagPrivate, head(4, 1), number(1024), e, plain, number(1024), number(1032), number(512), number(512)),
			"at most 1024", "",
		},
		"private RSA, cut off":    {packet(tagPrivate, head(4, 1), number(1024), e, plain, number(1024)), notPGP, ""},
		"private RSA, no numbers": {packet(tagPrivate, head(4, 1), number(1024), e), notPGP, ""},
		"a subkey": {
			append(packet(tagPublic, head(4, 1), number(2048), e), packet(tagPublicSubkey, head(4, 1), number(8193), e)...),
			"at most 8192", "",
		},
		"a private subkey": {
			append(packet(tagPublic, head(4, 1), number(2048), e), packet(tagPrivateSubkey, head(4, 1), number(8193), e)...),
			"at most 8192", "",
		},
		"DSA, 4096 bits": {packet(tagPublic, dsa(4096)...), "", dlog},
		"DSA, 4097 bits": {packet(tagPublic, dsa(4097)...), "at most 4096", ""},
		"DSA as a subkey": {
			append(packet(tagPublic, head(4, 27), make([]byte, 32)), packet(tagPublicSubkey, dsa(1024)...)...),
			"", dlog,
		},
		"ElGamal, 4096 bits":         {packet(tagPublic, head(4, 16), number(4096), number(8), number(4096)), "", dlog},
		"ElGamal, 4097 bits":         {packet(tagPublic, head(4, 16), number(4097), number(8), number(8)), "at most 4096", ""},
		"ElGamal, a large generator": {packet(tagPublic, head(4, 16), number(8), number(65535), number(8)), "at most 4096", ""},
		"ElGamal that also signs":    {packet(tagPublic, head(4, 20), number(1024), number(8), number(8)), "", dlog},
		"private ElGamal": {
			packet(tagPrivate, head(4, 16), number(1024), number(8), number(8), plain, number(5000)),
			"at most 4096", "",
		},
		"a curve":                       {packet(tagPublic, head(4, 22), curve, number(263)), "", ""},
		"a curve to encrypt to":         {packet(tagPublic, head(4, 18), curve, number(263), derivation), "", ""},
		"a curve with a long point":     {packet(tagPublic, head(4, 19), curve, number(8200)), "at most 8192", ""},
		"a curve without a point":       {packet(tagPublic, head(4, 19), curve), notPGP, ""},
		"a curve without a name":        {packet(tagPublic, head(4, 19)), notPGP, ""},
		"a derivation that is cut off":  {packet(tagPublic, head(4, 18), curve, number(263), []byte{9}), notPGP, ""},
		"a key of a fixed size":         {packet(tagPublic, head(6, 27), make([]byte, 32)), "", ""},
		"64 subkeys and keys":           {bytes.Repeat(packet(tagPublic, head(4, 27), make([]byte, 32)), 64), "", ""},
		"65 subkeys and keys":           {bytes.Repeat(packet(tagPublic, head(4, 27), make([]byte, 32)), 65), "more than 64 subkeys", ""},
		"a version that is too old":     {packet(tagPublic, head(3, 1), number(1024), e), notPGP, ""},
		"a version that does not exist": {packet(tagPublic, head(7, 1), number(1024), e), notPGP, ""},
		"a signature":                   {packet(2, []byte("x")), notPGP, ""},
		"nothing":                       {nil, notPGP, ""},
		"a packet that is cut off":      {packet(tagPublic, head(4, 1), number(1024), e)[:20], notPGP, ""},
	} {
		packets, err := keyPackets(tt.data)
		if tt.operator == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.operator) {
			t.Errorf("%s: %v, want %q", name, err, tt.operator)
		}
		if err != nil {
			continue
		}
		for _, p := range packets {
			if err = p.checkForClient(); err != nil {
				break
			}
		}
		if tt.client == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.client) {
			t.Errorf("%s, of a client: %v, want %q", name, err, tt.client)
		}
	}
}

// clientFunc is what the service withClient does with its client.
type clientFunc func(ctx context.Context, c *notifier.Client) error

// withClient is a service for tests that need a [notifier.Client] with the limits
// of a sender. The URL has the name of the function to call.
type withClient struct{ name string }

var (
	_           = notifier.Register[withClient]()
	clientFuncs = map[string]clientFunc{}
)

func (w *withClient) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Client", "https://client.example.com"
	s.URL("withclient://{name}")
	s.String(&w.name, "name", "", "the function to call")
}

func (w *withClient) Send(ctx context.Context, c *notifier.Client, _ *notifier.Message) error {
	return clientFuncs[w.name](ctx, c)
}

// callAsClient calls f with the client of a URL that a client brings.
func callAsClient(t *testing.T, f clientFunc) error {
	t.Helper()
	policy, err := egress.NewPolicy(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	sender := servicetest.NewSender(t)
	name := strings.NewReplacer("/", "-", "_", "-").Replace(strings.ToLower(t.Name()))
	d, err := sender.ParseOnce("withclient://"+name, policy)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	clientFuncs[name] = f
	return sender.Send(t.Context(), &notifier.Message{Body: "x"}, []notifier.Target{{Destination: d}},
		notifier.Options{Transient: true, Timeout: time.Minute}).Results[0].Err
}

// TestEncryptionTakesTurns checks that the work with keys for an encrypted mail,
// at its beginning and its end, waits for other work. It was outside of every
// limit before.
func TestEncryptionTakesTurns(t *testing.T) {
	me, _, _ := pgpTestKey(t, "user@example.com")
	you, _, _ := pgpTestKey(t, "you@example.org")
	for name, during := range map[string]string{"at the beginning": "before", "the signature at the end": "content"} {
		t.Run(name, func(t *testing.T) {
			err := callAsClient(t, func(ctx context.Context, c *notifier.Client) error {
				ctx, cancel := context.WithCancel(ctx)
				started, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
				hold := func() {
					go func() {
						ended <- c.Compute(context.Background(), func() error { close(started); <-release; return nil })
					}()
					<-started
					cancel() // so that the mail does not wait for the end of the work
				}
				if during == "before" {
					hold()
				}
				written := false
				content := mail.Part{Header: "Content-Type: text/plain\r\n", Body: func(w io.Writer) error {
					written = true
					hold()
					_, err := io.WriteString(w, "text")
					return err
				}}
				err := pgpEncrypted(ctx, c, content, openpgp.EntityList{you}, openpgp.EntityList{me}).Write(io.Discard)
				close(release)
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if written != (during == "content") {
					t.Errorf("the content was written: %t", written)
				}
				return err
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the mail was encrypted beside other work: %v", err)
			}
		})
	}
}

// TestKeySelectionTakesTurns checks that the signatures of a key are verified in
// turn with other work: 64 KiB of them take two seconds.
func TestKeySelectionTakesTurns(t *testing.T) {
	m := &service{pgp: pgpEncrypt, keys: &pgpKeys{public: pgpKey{data: pgptest.KeyWithSignatures(t, maxKeySize)}}}
	err := callAsClient(t, func(ctx context.Context, c *notifier.Client) error {
		if _, err := m.keys.public.read(ctx, c); err != nil {
			return err
		}
		started, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- c.Compute(context.Background(), func() error { close(started); <-release; return nil })
		}()
		<-started
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		_, err := m.protect(ctx, c, mail.NewRecipients([]mail.Address{{Address: "you@example.org"}}, nil, nil), mail.TextPart("plain", "x"))
		close(release)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		return err
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the key was selected beside other work: %v", err)
	}
}
