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
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/elgamal"
	pgppacket "github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
)

// randomOdd returns an odd composite number with the given number of bits.
func randomOdd(t *testing.T, bits int) *big.Int {
	t.Helper()
	b := make([]byte, bits/8)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	b[0] |= 0xc0
	n := new(big.Int).SetBytes(b)
	n.Div(n, big.NewInt(15))
	n.SetBit(n, 0, 1).Mul(n, big.NewInt(15))
	return n.SetBit(n, 0, 1)
}

// serviceAccountURL returns an fcm URL with an RSA key of the given size, whose
// factors are composite.
func serviceAccountURL(t *testing.T, bits int) string {
	t.Helper()
	one := big.NewInt(1)
	var p, q, phi, d *big.Int
	for d == nil {
		p, q = randomOdd(t, bits/2), randomOdd(t, bits/2)
		phi = new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
		d = new(big.Int).ModInverse(big.NewInt(65537), phi)
	}
	mod := func(m *big.Int) *big.Int { return new(big.Int).Mod(d, new(big.Int).Sub(m, one)) }
	inverse := new(big.Int).ModInverse(q, p)
	if inverse == nil {
		inverse = one // p and q have the common factor 15
	}
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
func elGamalKey(t *testing.T, bits int) string {
	t.Helper()
	e, err := openpgp.NewEntity("a", "", "a@b.example", nil)
	if err != nil {
		t.Fatal(err)
	}
	sub := &e.Subkeys[0]
	sub.PublicKey = pgppacket.NewElGamalPublicKey(time.Now(), &elgamal.PublicKey{G: randomOdd(t, bits-8), P: randomOdd(t, bits), Y: randomOdd(t, bits-8)})
	sub.PublicKey.IsSubkey = true
	if err := sub.Bindings[0].Packet.SignKey(sub.PublicKey, e.PrivateKey, nil); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := e.Serialize(&b); err != nil {
		t.Fatal(err)
	}
	return base64.URLEncoding.EncodeToString(b.Bytes())
}

var initialResponse = regexp.MustCompile(`<auth[^>]*>([^<]+)</auth>`)

// demandingXMPP starts an XMPP server whose SCRAM challenge demands the given
// number of iterations.
func demandingXMPP(t *testing.T, iterations int) (address string) {
	return listen(t, "127.0.0.1:0", func(c net.Conn) {
		_, _ = io.WriteString(c, `<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' id='1' from='127.0.0.1' version='1.0'><stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>SCRAM-SHA-256</mechanism></mechanisms></stream:features>`)
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
			_, _ = fmt.Fprintf(c, "<challenge xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>%s</challenge>", base64.StdEncoding.EncodeToString([]byte(challenge)))
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

// TestExpensiveKeys checks that keys and challenges that need much computation
// are refused before any of it. Eight URLs once took 56 seconds of CPU time, even
// after the response, and other alerts failed meanwhile.
func TestExpensiveKeys(t *testing.T) {
	t.Parallel()
	fine := newRecorder(t)
	mail, _ := mailServer(t)
	g := start(t, "", "timeout 5s\nkey ops {\nurl "+fine.url+"\n}\negress {\nallow 127.0.0.1\n}")
	attacks := []struct{ url, says string }{
		{serviceAccountURL(t, 32768), "at most 8192 are allowed"},
		{serviceAccountURL(t, 4096), "not prime"},
		{"mailto://a:b@" + mail + "/c@d.example?from=a@b.example&mode=insecure&pgppub=" + url.QueryEscape(elGamalKey(t, 4096)), "DSA or ElGamal"},
		{"mailto://a:b@" + mail + "/c@d.example?from=a@b.example&mode=insecure&pgppub=" + url.QueryEscape(elGamalKey(t, 32768)), "at most 4096 are allowed"},
		{"xmpp://a:b@" + demandingXMPP(t, 1_000_000) + "/c", "more than 100000 iterations"},
	}
	before := g.cpu()
	var wg sync.WaitGroup
	for _, a := range attacks {
		for range 8 {
			wg.Go(func() {
				r := g.post("/notify", message{"body": "x", "urls": []string{a.url}})
				if r.Status == http.StatusOK || !strings.Contains(r.Body, a.says) {
					t.Errorf("%.40s: status %d %.300s, want an error with %q", a.url, r.Status, r.Body, a.says)
				}
			})
		}
	}
	for range 20 {
		if r := g.post("/notify/ops", message{"body": "the alert"}); r.Status != http.StatusOK {
			t.Errorf("an alert got %d %s", r.Status, r.text())
		}
	}
	wg.Wait()
	time.Sleep(200 * time.Millisecond) // counts work that continues after the responses
	limit := 3 * time.Second
	if raceEnabled {
		limit *= 10
	}
	used := g.cpu() - before
	t.Logf("%d requests took %s of CPU time", 8*len(attacks), used)
	if used > limit {
		t.Errorf("the limit is %s", limit)
	}
}
