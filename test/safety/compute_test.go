package safety

import (
	"bytes"
	"crypto/rand"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/elgamal"
	pgppacket "github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"

	"github.com/caddy-notify/caddy-notify/internal/pgptest"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// randomOdd returns an odd number with the given number of bits. It is almost
// never a prime.
func randomOdd(t *testing.T, bits int) *big.Int {
	t.Helper()
	b := make([]byte, bits/8)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	b[0] |= 0xc0
	b[len(b)-1] |= 1
	return new(big.Int).SetBytes(b)
}

// serviceAccountURL returns an fcm URL with an RSA key of the given size. Its
// factors are composite, but otherwise its numbers fit together: a program that
// does not check the factors computes a whole signature.
func serviceAccountURL(t *testing.T, bits int) string {
	t.Helper()
	one := big.NewInt(1)
	var p, q, d, inverse *big.Int
	for d == nil || inverse == nil {
		p, q = randomOdd(t, bits/2), randomOdd(t, bits/2)
		phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
		d, inverse = new(big.Int).ModInverse(big.NewInt(65537), phi), new(big.Int).ModInverse(q, p)
	}
	mod := func(m *big.Int) *big.Int { return new(big.Int).Mod(d, new(big.Int).Sub(m, one)) }
	der, err := asn1.Marshal(struct {
		Version             int
		N                   *big.Int
		E                   int
		D, P, Q, Dp, Dq, Qi *big.Int
	}{0, new(big.Int).Mul(p, q), 65537, d, p, q, mod(p), mod(q), inverse})
	if err != nil {
		t.Fatal(err)
	}
	file, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p", "client_email": "a@b.example",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return "fcm://p/device?keyfile=" + base64.URLEncoding.EncodeToString(file)
}

// elGamalKey returns an OpenPGP key with an ElGamal subkey of the given size.
func elGamalKey(t *testing.T, bits int) []byte {
	t.Helper()
	e, err := openpgp.NewEntity("a", "", "a@b.example", nil)
	if err != nil {
		t.Fatal(err)
	}
	sub := &e.Subkeys[0]
	sub.PublicKey = pgppacket.NewElGamalPublicKey(time.Now(),
		&elgamal.PublicKey{G: randomOdd(t, bits-8), P: randomOdd(t, bits), Y: randomOdd(t, bits-8)})
	sub.PublicKey.IsSubkey = true
	if err := sub.Bindings[0].Packet.SignKey(sub.PublicKey, e.PrivateKey, nil); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := e.Serialize(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var initialResponse = regexp.MustCompile(`<auth[^>]*>([^<]+)</auth>`)

// demandingXMPP starts an XMPP server whose SCRAM challenge demands the given
// number of iterations.
func demandingXMPP(t *testing.T, iterations int) (address string) {
	return listen(t, "127.0.0.1:0", func(c net.Conn) {
		_, _ = io.WriteString(c,
			`<?xml version='1.0'?><stream:stream xmlns='jabber:client' `+
				`xmlns:stream='http://etherx.jabber.org/streams' id='1' `+
				`from='127.0.0.1' version='1.0'><stream:features><mechanisms `+
				`xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>SCRAM-SHA-256</mechanism></mechanisms></stream:features>`)
		var got []byte
		for b := make([]byte, 4096); ; {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			got = append(got, b[:n]...)
			m := initialResponse.FindSubmatch(got)
			if m == nil {
				continue
			}
			got = nil
			first, _ := base64.StdEncoding.DecodeString(string(m[1]))
			_, nonce, _ := strings.Cut(string(first), ",r=")
			challenge := fmt.Sprintf("r=%sx,s=QSXCR+Q6sek8bf92,i=%d", nonce, iterations)
			_, _ = fmt.Fprintf(c, "<challenge xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>%s</challenge>",
				base64.StdEncoding.EncodeToString([]byte(challenge)))
		}
	})
}

// cpu returns the CPU time that the gateway has used.
func (g *gateway) cpu() time.Duration {
	g.t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", g.command.Process.Pid))
	if err != nil {
		g.t.Skipf("the CPU time of a process is not available: %v", err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	const tick = 10 * time.Millisecond
	return time.Duration(g.number(fields[11])+g.number(fields[12])) * tick
}

// cpuOf returns the CPU time that the gateway uses for f, including work that
// continues after f has returned.
func (g *gateway) cpuOf(f func()) time.Duration {
	g.t.Helper()
	before := g.cpu()
	f()
	for used := g.cpu(); ; {
		time.Sleep(200 * time.Millisecond)
		now := g.cpu()
		if now-used < 40*time.Millisecond {
			return now - before
		}
		used = now
	}
}

// TestExpensiveKeys checks that keys and challenges that need much computation
// are refused before, or computed one after the other. Without that, eight URLs
// took 56 seconds of CPU time, some of it after the response, and alerts failed
// meanwhile. Keys with many signatures come both ways if full is set, one way with the
// race detector, and otherwise not.
func TestExpensiveKeys(t *testing.T) {
	racetest.LeaveToCI(t)
	t.Parallel()
	timeout := 2 * time.Second
	if racetest.Enabled {
		timeout = 5 * time.Second
	}
	fine := newRecorder(t)
	proxy := newProxy(t)
	mail, _ := mailServer(t)
	block := "key ops {\nurl " + fine.url + "\n}\negress {\nallow 127.0.0.1\n}"
	g := start(t, "", block, proxy.environment()...)
	impatient := start(t, "", "timeout "+timeout.String()+"\n"+block, proxy.environment()...)
	withKey := func(key []byte) string {
		return "mailto://a:b@" + mail + "/c@d.example?from=a@b.example&mode=insecure&pgppub=" + base64.RawURLEncoding.EncodeToString(key)
	}
	elGamal, tooLarge, signed := elGamalKey(t, 4096), elGamalKey(t, 32768), pgptest.KeyWithSignatures(t, 45<<10) // fits in a URL
	directory := "mailto://a:b@" + mail + "/c@directory.example?from=a@b.example&mode=insecure&wkd=yes"
	const little = 2 * time.Second
	attacks := []struct {
		what, url string
		directory []byte // the key in the Web Key Directory
		want      string
		limit     time.Duration
	}{
		{"an RSA key of 32768 bits", serviceAccountURL(t, 32768), nil, "at most 8192 are allowed", little},
		{"an RSA key with composite factors", serviceAccountURL(t, 8192), nil, "not prime", little},
		{"ElGamal in pgppub", withKey(elGamal), nil, "DSA or ElGamal", little},
		{"ElGamal of 32768 bits in pgppub", withKey(tooLarge), nil, "at most 4096 are allowed", little},
		{"ElGamal from the directory", directory, elGamal, "DSA or ElGamal", little},
		{"ElGamal of 32768 bits from the directory", directory, tooLarge, "at most 4096 are allowed", little},
		{"1000000 iterations", "xmpp://a:b@" + demandingXMPP(t, 1_000_000) + "/c", nil, "more than 100000 iterations", little},
		// Twelve keys take about six seconds, and more on a busy machine. One is computed at
		// a time, and none is begun after the timeout.
		{"a key with many signatures from the directory", directory, signed, "", 5 * timeout / 2},
		{"a key with many signatures", withKey(signed), nil, "", 5 * timeout / 2},
	}
	switch {
	case racetest.Enabled:
		attacks = attacks[:len(attacks)-1] // the last two take most of the time
	case !full:
		attacks = attacks[:len(attacks)-2]
	}
	for _, a := range attacks {
		proxy.answerWith(a.directory)
		if a.want == "" {
			g = impatient
		}
		const n = 12
		used := g.cpuOf(func() {
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() {
					r := g.post("/notify", message{"body": "x", "urls": []string{a.url}})
					if r.Status == http.StatusOK || !strings.Contains(r.Body, a.want) {
						t.Errorf("%s: status %d %.300s, want an error with %q", a.what, r.Status, r.Body, a.want)
					}
				})
			}
			for range 5 {
				if r := g.post("/notify/ops", message{"body": "the alert"}); r.Status != http.StatusOK {
					t.Errorf("%s: an alert got %d %s", a.what, r.Status, r.text())
				}
			}
			wg.Wait()
		})
		if racetest.Enabled {
			a.limit *= 10
		}
		t.Logf("%s: %d requests took %s of CPU time", a.what, n, used)
		if used > a.limit {
			t.Errorf("%s: the limit is %s", a.what, a.limit)
		}
	}
}
