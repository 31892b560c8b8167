package integration

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// pushService is a push service: it takes pushes as RFC 8030 says, and hands them to
// the test, which is the network between it and the browser.
type pushService struct {
	*httptest.Server
	pushes chan push
	status atomic.Int32 // of its answers
}

// push is a push that the gateway has sent.
type push struct {
	path   string
	header http.Header
	body   []byte
}

func newPushService(t *testing.T) *pushService {
	t.Helper()
	s := &pushService{pushes: make(chan push, 100)}
	s.status.Store(http.StatusCreated)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.pushes <- push{r.URL.Path, r.Header, body}
		w.WriteHeader(int(s.status.Load()))
	}))
	cert, err := tls.LoadX509KeyPair(authority.certificate(t))
	if err != nil {
		t.Fatal(err)
	}
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.StartTLS()
	t.Cleanup(s.Close)
	s.URL = strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	return s
}

// take returns the next push.
func (s *pushService) take(t *testing.T) push {
	t.Helper()
	select {
	case p := <-s.pushes:
		return p
	case <-time.After(20 * time.Second):
		t.Fatal("no push came")
		return push{}
	}
}

// subscription is what a browser has made at a push service.
type subscription struct {
	endpoint string
	key      *ecdh.PrivateKey
	auth     []byte
}

func newSubscription(t *testing.T, s *pushService, path string) *subscription {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	auth := make([]byte, 16)
	rand.Read(auth)
	return &subscription{s.URL + path, key, auth}
}

// json is the subscription as PushSubscription.toJSON returns it.
func (s *subscription) json() string {
	b64 := base64.RawURLEncoding.EncodeToString
	return fmt.Sprintf(`{"endpoint": %q, "expirationTime": null, "keys": {"p256dh": %q, "auth": %q}}`,
		s.endpoint, b64(s.key.PublicKey().Bytes()), b64(s.auth))
}

// stub is a script that puts the subscription in place of what the browser would get
// from the push service of its maker.
func (s *subscription) stub() string {
	return fmt.Sprintf(`(() => {
		if (!self.PushManager) return;
		let made = localStorage.getItem("subscription");
		const subscription = (options) => made && ({
			endpoint: JSON.parse(made).endpoint, options, toJSON: () => JSON.parse(made),
			unsubscribe: async () => { localStorage.removeItem("subscription"); made = null; return true; },
		});
		PushManager.prototype.getSubscription = async () => subscription();
		PushManager.prototype.subscribe = async (options) => {
			if (!options.userVisibleOnly || atob(options.applicationServerKey.replace(/-/g, "+").replace(/_/g, "/")).length !== 65)
			throw new TypeError("wrong options");
			localStorage.setItem("subscription", made = JSON.stringify(%s));
			return subscription(options);
		};
	})()`, s.json())
}

// decrypt decrypts a push (RFC 8291, section 3.4; RFC 8188, section 2).
func (s *subscription) decrypt(body []byte) (string, error) {
	if len(body) < 21 || len(body) < 21+int(body[20]) {
		return "", errors.New("the push has no header")
	}
	salt, sender, sealed := body[:16], body[21:21+int(body[20])], body[21+int(body[20]):]
	public, err := ecdh.P256().NewPublicKey(sender)
	if err != nil {
		return "", err
	}
	shared, err := s.key.ECDH(public)
	if err != nil {
		return "", err
	}
	derive := func(secret, salt []byte, info string, n int) []byte {
		key, kerr := hkdf.Key(sha256.New, secret, salt, info, n)
		err = errors.Join(err, kerr)
		return key
	}
	secret := derive(shared, s.auth, "WebPush: info\x00"+string(s.key.PublicKey().Bytes())+string(sender), 32)
	key := derive(secret, salt, "Content-Encoding: aes128gcm\x00", 16)
	nonce := derive(secret, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return "", err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return "", err
	}
	text, err := gcm.Open(nil, nonce, sealed, nil)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(string(text), "\x02"), nil
}
