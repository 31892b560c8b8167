package routing_test

import (
	"bufio"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/caddyhttptest"
	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

// TestMatcherOfConfigID attacks a key whose address needs a password, behind the matcher of
// docs/security.md, taken from there word for word, and without it.
func TestMatcherOfConfigID(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^ *(@\S+) header X-Apprise-Config-ID .+$`).FindAllStringSubmatch(string(page), -1)
	if len(found) != 1 {
		t.Fatalf("docs/security.md has %d matchers of the header, want 1", len(found))
	}
	matcher, name := found[0][0], found[0][1]
	// The hash of "hiccup".
	const login = " {\nops $2a$04$jxsEfcbt8SdT3Ml3roevo.l/99ld7.JVbknwVqhu6lXAvHBTmcKvS\n}\n"
	s := gatewaytest.NewStation(t)
	serve := func(matcher string) {
		caddyhttptest.StartCaddy(t, "", caddyhttptest.Server+" {\n"+matcher+"\nbasic_auth /notify/ops*"+login+
			"notify {\nstateless on\negress {\nallow 127.0.0.1\n}\nconfig_id on\nkey ops {\nurl "+
			s.NotifyURL("/ops")+"\n}\nkey free {\nurl "+s.NotifyURL("/free")+"\n}\n}\nrespond next 404\n}\n")
	}
	const names = "X-Apprise-Config-ID: ops\r\n"
	attacks := map[string][2]string{ // the target and the lines of the header
		"plain":            {"/notify", names},
		"slash":            {"/notify/", names},
		"query":            {"/notify?tag=all", names},
		"encoded path":     {"/%6eotify", names},
		"dots":             {"/notify/free/..", names},
		"slashes":          {"//notify", names},
		"lower case":       {"/notify", strings.ToLower(names)},
		"spaces":           {"/notify", "X-Apprise-Config-ID: \t ops \t\r\n"},
		"folded":           {"/notify", "X-Apprise-Config-ID:\r\n ops\r\n"},
		"space before":     {"/notify", "X-Apprise-Config-ID : ops\r\n"},
		"twice":            {"/notify", names + names},
		"another first":    {"/notify", "X-Apprise-Config-ID: free\r\n" + names},
		"empty first":      {"/notify", "X-Apprise-Config-ID:\r\n" + names},
		"list":             {"/notify", "X-Apprise-Config-ID: free, ops\r\n"},
		"underscores":      {"/notify", "X_Apprise_Config_ID: ops\r\n"},
		"hop by hop":       {"/notify", "Connection: close, X-Apprise-Config-ID\r\n" + names},
		"other key's path": {"/notify/free", names},
		"own path":         {"/notify/ops", names},
		"upper-case path":  {"/NOTIFY/ops", names},
		"source":           {"/notify/free/proxmox", names},
		"beat":             {"/notify?beat=nightly", names},
		"another method":   {"/notify", "X-HTTP-Method-Override: POST\r\n" + names},
	}
	try := func(target, header string) (int, error) {
		c, err := net.Dial("tcp", caddyhttptest.Site)
		if err != nil {
			return 0, err
		}
		defer c.Close() //nolint:errcheck // the response is read
		body := `{"title":"stranger","body":"x","message":"x"}`
		if _, err := c.Write([]byte("POST " + target + " HTTP/1.1\r\nHost: " + caddyhttptest.Site + "\r\n" +
			"Content-Type: application/json\r\nContent-Length: 45\r\n" + header + "\r\n" + body)); err != nil {
			return 0, err
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return 0, err
		}
		_ = resp.Body.Close()
		return resp.StatusCode, nil
	}
	send := func(target, header string) int {
		status, err := try(target, header)
		for n := 0; err != nil && n < 10; n++ { // the server before a reload resets what it has not accepted
			status, err = try(target, header)
		}
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	atKey := func() (n int) {
		for path := range strings.FieldsSeq(s.Paths()) {
			if path == "ops" {
				n++
			}
		}
		return n
	}
	serve("")
	if status := send("/notify", names); status != 200 || atKey() != 1 {
		t.Fatalf("without the matcher, the header avoids no password: %d", status)
	}
	serve(matcher + "\nbasic_auth " + name + login)
	for what, a := range attacks {
		if status := send(a[0], a[1]); atKey() > 0 {
			t.Errorf("%s: a message to the key without the password, with the status %d", what, status)
		}
	}
	if status := send("/notify", names+"Authorization: Basic b3BzOmhpY2N1cA==\r\n"); status != 200 || atKey() != 1 {
		t.Errorf("with the password: %d", status)
	}
	if status := send("/notify/free", ""); status != 200 {
		t.Errorf("to the other key: %d", status)
	}
}
