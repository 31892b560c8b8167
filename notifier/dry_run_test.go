package notifier_test

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestDryRunCatalogue checks that no dry run of a service contains a secret.
func TestDryRunCatalogue(t *testing.T) {
	racetest.SkipIfSlow(t)
	all := examples(t)
	for _, s := range catalogue() {
		shown := 0
		for _, e := range all[s.Name] {
			d, err := notifier.Parse(e.url, nil)
			if err != nil {
				continue
			}
			for _, m := range probes(t) {
				r := d.DryRun(t.Context(), "test", m)
				all := append(r.Requests, r.Connections...)
				shown += len(all)
				for _, secret := range notifier.Secrets(d) {
					if text := strings.Join(all, "\n"); len(secret) > 7 && strings.Contains(text, secret) {
						t.Errorf("%s shows the secret %q:\n%s", e.url, secret, text)
					}
				}
			}
		}
		if shown == 0 {
			t.Errorf("%s: the dry run shows no request", s.Name)
		}
	}
}

func dryRun(t *testing.T, u string, m *notifier.Message) *notifier.DryRun {
	t.Helper()
	d, err := notifier.Parse(u, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d.DryRun(t.Context(), "test", m)
}

// TestDryRunSecrets checks that secrets are masked in all forms: escaped in
// URLs, forms and JSON, in base64 with a user name, as digests, and as a whole
// if they are short.
func TestDryRunSecrets(t *testing.T) {
	const secret = `p&s"\é/1`
	login := base64.StdEncoding.EncodeToString([]byte("bob:s3cr3t"))
	sum := md5.Sum([]byte("s3cr3ts3cr3t"))
	digest := hex.EncodeToString(sum[:])
	for _, tt := range []struct{ url, want, never string }{
		{"json://bob:s3cr3t@h/x", "Authorization: Basic xxxxx\n", login},
		{"json://h/x?+X-Login=" + login + "&+Session=1", "X-Login: xxxxx\n", login},
		{"json://bob:s3cr3t@h/x?:a=" + login, `"a": "xxxxx"`, login},
		{"json://bob:p%26s%22%5C%C3%A9%2F1@h/x?:a=p%26s%22%5C%C3%A9%2F1", `"a": "xxxxx"`, "p&s"},
		{"form://bob:p%26s%22%5C%C3%A9%2F1@h/x?:a=p%26s%22%5C%C3%A9%2F1", "a=xxxxx", "p%26s"},
		{"form://bob:p%26s%22%5C%C3%A9%2F1@h/x?method=get&:a=p%26s%22%5C%C3%A9%2F1", "a=xxxxx", "p%26s"},
		{"form://bob:pw@h/x?:a=pw", "a=xxxxx", "a=pw"},
		{"jellyfin://bob:s3cr3ts3cr3t@h", `"passwordMd5": "xxxxx"`, digest},
		{"form://h/a?:a=s3cr3ts3cr3t&:b=" + digest, "b=xxxxx", digest},
		{"discord://4184/t0k3nt0k3n", "POST https://discord.com/api/webhooks/xxxxx/xxxxx\n", "t0k3n"},
	} {
		got := strings.Join(dryRun(t, tt.url, &notifier.Message{Title: "T", Body: "hello"}).Requests, "\n")
		if !strings.Contains(got, tt.want) || strings.Contains(got, tt.never) || strings.Contains(got, secret) {
			t.Errorf("%s shows\n%s\nwant %q and never %q", tt.url, got, tt.want, tt.never)
		}
	}
}

// TestDryRunMessages checks that a dry run has the messages that would be sent,
// rendered and split.
func TestDryRunMessages(t *testing.T) {
	r := dryRun(t, "46elks://bob:pass@15551230000/15551230001?overflow=split", &notifier.Message{Body: strings.Repeat("word ", 40)})
	if len(r.Messages) != 2 || len(r.Requests) != 2 || r.Err != nil {
		t.Fatalf("%d messages in %d requests, error %v", len(r.Messages), len(r.Requests), r.Err)
	}
	for i, m := range r.Messages {
		if m.Title != "" || len(m.Body) > 160 {
			t.Errorf("message %d: title %q, body %q", i, m.Title, m.Body)
		}
	}
	file := []*notifier.Attachment{notifier.NewAttachment("a.txt", "text/plain", []byte("file"))}
	r = dryRun(t, "gotify://h/t0k3n", &notifier.Message{Body: "x", Attachments: file})
	if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "cannot send files") {
		t.Errorf("warnings %q", r.Warnings)
	}
	r = dryRun(t, "gotify://h/t0k3n", &notifier.Message{Attachments: file})
	if r.Err != nil || len(r.Requests) != 1 || !strings.Contains(r.Requests[0], "a.txt (4 B)") {
		t.Errorf("error %v, requests %q", r.Err, r.Requests)
	}
	r = dryRun(t, "mqtt://h:1884/topic", &notifier.Message{Body: "x"})
	if len(r.Connections) != 1 || r.Connections[0] != "tcp h:1884" || r.Err == nil {
		t.Errorf("connections %q, error %v", r.Connections, r.Err)
	}
}
