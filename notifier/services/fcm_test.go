package services

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// googleServer stands in for Google's token endpoint and its push service. It
// accepts only the token that it issued last.
type googleServer struct {
	t      *testing.T
	key    *rsa.PublicKey // of the service account
	tokens int            // number of tokens issued
	valid  string         // the valid token
	pushed []string       // bodies of accepted requests
}

func (g *googleServer) answer(q *http.Request, body string) (int, string) {
	if q.URL.String() == "https://oauth2.googleapis.com/token" {
		form, _ := url.ParseQuery(body)
		g.checkAssertion(form.Get("assertion"))
		if form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
			return 400, "unsupported_grant_type"
		}
		g.tokens++
		g.valid = fmt.Sprint("token-", g.tokens)
		return 200, fmt.Sprintf(`{"access_token": %q, "expires_in": 3600}`, g.valid)
	}
	if q.URL.String() != "https://fcm.googleapis.com/v1/projects/project-1/messages:send" {
		return 404, ""
	}
	if q.Header.Get("Authorization") != "Bearer "+g.valid {
		return 401, `{"error": {"status": "UNAUTHENTICATED"}}`
	}
	g.pushed = append(g.pushed, body)
	return 200, `{"name": "projects/project-1/messages/1"}`
}

func (g *googleServer) checkAssertion(jwt string) {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		g.t.Fatalf("%q is not a JWT", jwt)
	}
	signature, _ := base64.RawURLEncoding.DecodeString(parts[2])
	digest := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(g.key, crypto.SHA256, digest[:], signature); err != nil {
		g.t.Error(err)
	}
	var claims struct {
		Iss, Aud, Scope string
		Iat, Exp        int64
	}
	data, _ := base64.RawURLEncoding.DecodeString(parts[1])
	if err := json.Unmarshal(data, &claims); err != nil {
		g.t.Fatal(err)
	}
	now := time.Now().Unix()
	if claims.Iss != "push@project-1.example" || claims.Aud != "https://oauth2.googleapis.com/token" || claims.Scope != fcmScope ||
		claims.Iat > now || claims.Exp <= now || claims.Exp-claims.Iat > 3600 {
		g.t.Errorf("claims: %s", data)
	}
}

// keyFile returns the key and the key file of a new service account, as the cloud
// console creates it.
func keyFile(t *testing.T) (key *rsa.PrivateKey, file []byte) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file, err = json.Marshal(map[string]string{
		"type": "service_account", "project_id": "project-1", "private_key_id": "key-1", "client_email": "push@project-1.example",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return key, file
}

func TestFCMServiceAccount(t *testing.T) {
	key, file := keyFile(t)
	google := &googleServer{t: t, key: &key.PublicKey}
	address := "fcm://project-1/device1/%23topic1?priority=high&color=yes&image=yes&+a=b&keyfile=" + base64.URLEncoding.EncodeToString(file)
	send := servicetest.API(google.answer).Destination(t, address)
	for range 2 {
		if err := send(servicetest.Message(t, "plain")); err != nil {
			t.Fatal(err)
		}
	}
	if google.tokens != 1 || len(google.pushed) != 4 {
		t.Fatalf("%d tokens for %d pushes", google.tokens, len(google.pushed))
	}
	for _, want := range []string{
		`"token":"device1"`, `"topic":"topic1"`, `"android":{"notification":{"color":"#3AA3E3"},"priority":"HIGH"}`,
		`"apns":{"headers":{"apns-priority":"10","apns-push-type":"alert"}}`, `"data":{"a":"b"}`,
		`"title":"Disk almost full"`, `"webpush":{"headers":{"Urgency":"high"}}`, `"image":"https://icons.example.com/info-256x256.png"`,
	} {
		if !strings.Contains(strings.Join(google.pushed, "\n"), want) {
			t.Errorf("no %s in %s", want, google.pushed)
		}
	}
}

// An access token that the service refuses is renewed once. If the service refuses
// the new token, too, the delivery fails.
func TestFCMRenewsToken(t *testing.T) {
	key, file := keyFile(t)
	google := &googleServer{t: t, key: &key.PublicKey}
	address := "fcm://project-1/device1?keyfile=" + url.PathEscape(string(file))
	send := servicetest.API(google.answer).Destination(t, address)
	if err := send(servicetest.Message(t, "plain")); err != nil {
		t.Fatal(err)
	}
	google.valid = "another"
	if err := send(servicetest.Message(t, "plain")); err != nil {
		t.Fatal(err)
	}
	if google.tokens != 2 || len(google.pushed) != 2 {
		t.Fatalf("%d tokens for %d pushes", google.tokens, len(google.pushed))
	}
	tokens := 0
	refuse := func(q *http.Request, body string) (int, string) {
		if q.URL.Host == "oauth2.googleapis.com" {
			tokens++
			return google.answer(q, body)
		}
		return 401, "no"
	}
	if err := servicetest.API(refuse).Destination(t, address)(servicetest.Message(t, "plain")); err == nil || tokens != 2 {
		t.Errorf("%v after %d tokens", err, tokens)
	}
}

// A key file for another project than the URL's is refused.
func TestFCMOtherProject(t *testing.T) {
	_, file := keyFile(t)
	_, err := notifier.Parse("fcm://project-2/device1?keyfile="+base64.StdEncoding.EncodeToString(file), nil)
	if err == nil || !strings.Contains(err.Error(), "another project") {
		t.Error(err)
	}
}
