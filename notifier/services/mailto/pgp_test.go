package mailto

import (
	"bytes"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp/armor"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// pgpTestKey returns a new key, and its public and private form for a URL.
func pgpTestKey(t *testing.T, email string) (key *openpgp.Entity, public, private string) {
	t.Helper()
	key, err := openpgp.NewEntity("Test", "", email, nil)
	if err != nil {
		t.Fatal(err)
	}
	var pub, armored bytes.Buffer
	if err := key.Serialize(&pub); err != nil {
		t.Fatal(err)
	}
	w, err := armor.Encode(&armored, openpgp.PrivateKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := key.SerializePrivateWithoutSigning(w, nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return key, base64.StdEncoding.EncodeToString(pub.Bytes()), base64.StdEncoding.EncodeToString(armored.Bytes())
}

// pgpOpen decrypts a mail. It returns the mail inside and whether it was signed
// with the key.
func pgpOpen(t *testing.T, p parsedMail, reader, signer *openpgp.Entity) (inner parsedMail, signed bool) {
	t.Helper()
	if p.kind != "encrypted(pgp-encrypted, octet-stream)" || p.parts[0].body != "Version: 1\r\n" {
		t.Fatalf("%s: %q", p.kind, p.parts)
	}
	block, err := armor.Decode(strings.NewReader(p.parts[1].body))
	if err != nil {
		t.Fatal(err)
	}
	md, err := openpgp.ReadMessage(block.Body, openpgp.EntityList{reader, signer}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(md.UnverifiedBody)
	if err != nil {
		t.Fatal(err)
	}
	return parseMail(t, plain), md.IsSigned && md.SignatureError == nil
}

func TestPGP(t *testing.T) {
	s, sender := startMail(t, &mailServer{}), servicetest.NewSender(t)
	you, youPublic, _ := pgpTestKey(t, "you@example.org")
	me, mePublic, mePrivate := pgpTestKey(t, "user@example.com")
	mail := func(t *testing.T, rest string) ([]byte, parsedMail) {
		t.Helper()
		data := mustSend(t, sender, s, s.url("mailto", "user", "/you@example.org?"+rest), servicetest.Message(t, "attach")).data
		return data, parseMail(t, data)
	}
	const kind = "mixed(alternative(plain, html), plain, png)"

	t.Run("encrypt", func(t *testing.T) {
		for _, rest := range []string{"pgppub=" + youPublic, "pgp=encrypt&pgpkey=" + youPublic, "pgp=yes&pgppub=" + youPublic} {
			data, p := mail(t, rest)
			if bytes.Contains(data, []byte("see attached")) {
				t.Error("the text is not encrypted")
			}
			inner, signed := pgpOpen(t, p, you, me)
			if inner.kind != kind || signed || inner.parts[2].body != "disk report: 91% used\n" {
				t.Errorf("%s, signed: %v, %q", inner.kind, signed, inner.parts)
			}
			if strings.Contains(fmtDestination(t, s.url("mailto", "user", "?"+rest)), youPublic[:20]) {
				t.Error("the destination reveals the key")
			}
		}
	})
	t.Run("encrypt and sign", func(t *testing.T) {
		for _, mode := range []string{"encrypt", "sign"} {
			_, p := mail(t, "pgp="+mode+"&pgppub="+youPublic+"&pgpprv="+mePrivate)
			if inner, signed := pgpOpen(t, p, you, me); inner.kind != kind || !signed {
				t.Errorf("%s: %s, signed: %v", mode, inner.kind, signed)
			}
		}
	})
	t.Run("sign", func(t *testing.T) {
		for _, rest := range []string{"pgpprv=" + mePrivate, "pgp=sign&pgpprv=" + mePrivate} {
			data, p := mail(t, rest)
			if p.kind != "signed("+kind+", pgp-signature)" || !strings.Contains(p.header.Get("Content-Type"), "micalg=pgp-sha256") {
				t.Fatalf("%s, %s", p.kind, p.header.Get("Content-Type"))
			}
			// The signature covers everything between the boundaries.
			_, boundary, _ := strings.Cut(p.header.Get("Content-Type"), "boundary=")
			parts := strings.Split(string(data), "\r\n--"+boundary)
			content := strings.TrimPrefix(parts[1], "\r\n")
			signature, err := armor.Decode(strings.NewReader(p.parts[len(p.parts)-1].body))
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := openpgp.VerifyDetachedSignature(openpgp.EntityList{me}, strings.NewReader(content), signature.Body, nil); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("neither", func(t *testing.T) {
		if _, p := mail(t, "pgp=no&pgppub="+youPublic+"&pgpprv="+mePrivate); p.kind != kind {
			t.Error(p.kind)
		}
	})
	t.Run("unusable keys", func(t *testing.T) {
		if err := me.EncryptPrivateKeys([]byte("passphrase"), nil); err != nil {
			t.Fatal(err)
		}
		var locked bytes.Buffer
		if err := me.SerializePrivateWithoutSigning(&locked, nil); err != nil {
			t.Fatal(err)
		}
		for rest, want := range map[string]string{
			"pgp=encrypt": "pgp=encrypt needs a key", "pgp=sign": "pgp=sign needs a key", "pgp=sometimes": "must be one of encrypt, sign, no",
			"pgppub=/etc/passwd": "is not an OpenPGP key", "pgppub=~me/key.asc": "is not base64", "pgpprv=" + mePublic: "pgpprv is a public key",
			"pgpprv=" + base64.StdEncoding.EncodeToString(locked.Bytes()): "pgpprv has a passphrase",
		} {
			if _, err := sender.Parse(s.url("mailto", "user", "?"+rest), nil); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.30s: %v instead of %q", rest, err, want)
			}
		}
	})
}

func fmtDestination(t *testing.T, address string) string {
	t.Helper()
	d, err := servicetest.NewSender(t).Parse(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// wkdServer runs a forward proxy, set in the environment, that answers for the
// hosts of Web Key Directories.
func wkdServer(t *testing.T, keys map[string][]byte) (asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	config := testCA.Certificate(t, "example.org", "openpgpkey.example.org")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	behind := &http.Server{TLSConfig: config, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Host+r.URL.String())
		mu.Unlock()
		key, ok := keys[r.Host+r.URL.String()]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(key)
	})}
	proxyListener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, err := net.Dial("tcp", l.Addr().String())
		if err != nil || r.Method != http.MethodConnect {
			http.Error(w, "no", http.StatusBadGateway)
			return
		}
		from, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(to, buffered); _ = to.Close() }()
		_, _ = io.Copy(from, to)
		_ = from.Close()
	})}
	var wg sync.WaitGroup
	wg.Go(func() { _ = behind.ServeTLS(l, "", "") })
	wg.Go(func() { _ = proxy.Serve(proxyListener) })
	t.Cleanup(func() { _, _, _ = proxy.Close(), behind.Close(), l.Close(); _ = proxyListener.Close(); wg.Wait() })
	t.Setenv("HTTPS_PROXY", "http://"+proxyListener.Addr().String())
	t.Setenv("NO_PROXY", "")
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		out := seen
		seen = nil
		return out
	}
}

func TestWebKeyDirectory(t *testing.T) {
	joe, public, _ := pgpTestKey(t, "Joe.Doe@example.org")
	ann, annPublic, _ := pgpTestKey(t, "ann@example.org")
	raw := func(b64 string) []byte { b, _ := base64.StdEncoding.DecodeString(b64); return b }
	// The hash of the example in the specification.
	const advanced = "openpgpkey.example.org/.well-known/openpgpkey/example.org/hu/iy9q119eutrkn8s1mk4r39qejnbu3n5q?l=Joe.Doe"
	const direct = "example.org/.well-known/openpgpkey/hu/"
	annPlace := strings.TrimPrefix(directoryURLs("ann@example.org")[1], "https://")
	asked := wkdServer(t, map[string][]byte{advanced: raw(public), annPlace: raw(annPublic)})
	s, sender := startMail(t, &mailServer{}), servicetest.NewSender(t)

	u := s.url("mailto", "user", "/Joe.Doe@example.org?wkd=yes&bcc=ann@example.org")
	for i := range 2 {
		p := parseMail(t, mustSend(t, sender, s, u, servicetest.Message(t, "plain")).data)
		for _, key := range []*openpgp.Entity{joe, ann} {
			if inner, _ := pgpOpen(t, p, key, key); inner.kind != "alternative(plain, html)" {
				t.Error(inner.kind)
			}
		}
		seen := asked()
		if i == 0 && (len(seen) != 3 || seen[0] != advanced || !strings.HasPrefix(seen[2], direct)) || i == 1 && len(seen) != 0 {
			t.Errorf("message %d: asked for %q", i+1, seen)
		}
	}

	r := servicetest.Send(t, sender, s.url("mailto", "user", "/nobody@example.org?wkd=yes"), servicetest.Message(t, "plain"), mailTime)
	if r.Err == nil || !strings.Contains(r.Err.Error(), "the key of recipient 1: it is not in the Web Key Directory") || len(s.got()) != 0 {
		t.Errorf("without a key: %v", r.Err)
	}
}
