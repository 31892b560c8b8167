package standardwebhook_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/standardwebhook"
)

// TestSpecification has the example of the specification's reference implementations.
func TestSpecification(t *testing.T) {
	const id, body = "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`
	key, err := standardwebhook.ParseKey("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	h, err := key.Sign(id, time.Unix(1614265330, 0), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if h[standardwebhook.HeaderSignature] != want || h[standardwebhook.HeaderTimestamp] != "1614265330" || h[standardwebhook.HeaderID] != id {
		t.Errorf("signed %v", h)
	}
	for name, c := range map[string]struct {
		id, at, signatures, body string
		ok                       bool
	}{
		"its own":             {id, "1614265330", want, body, true},
		"one of several":      {id, "1614265330", "v1,x v1a,y " + want, body, true},
		"no signature":        {id, "1614265330", "", body, false},
		"another version":     {id, "1614265330", strings.Replace(want, "v1,", "v2,", 1), body, false},
		"another id":          {"msg", "1614265330", want, body, false},
		"another time":        {id, "1614265331", want, body, false},
		"another body":        {id, "1614265330", want, body + " ", false},
		"after ten others":    {id, "1614265330", strings.Repeat("v1,eA== ", 10) + want, body, false},
		"the tenth that fits": {id, "1614265330", strings.Repeat("v1,eA== ", 9) + want, body, true},
	} {
		if ok := key.Verify(c.id, c.at, c.signatures, bytes.NewReader([]byte(c.body))); ok != c.ok {
			t.Errorf("%s: verified %v, want %v", name, ok, c.ok)
		}
	}
}

func TestParseKey(t *testing.T) {
	for _, secret := range []string{"", "whsec_", "no base64!", "whsec_QQ==", base64.StdEncoding.EncodeToString(make([]byte, 15))} {
		if _, err := standardwebhook.ParseKey(secret); err == nil {
			t.Errorf("the secret %q is accepted", secret)
		}
	}
	if k, err := standardwebhook.ParseKey(base64.StdEncoding.EncodeToString(make([]byte, 16))); err != nil || len(k) != 16 {
		t.Errorf("16 bytes: %v", err)
	}
}
