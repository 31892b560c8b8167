package services_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

// mailAPIs are a URL of each service that sends mail by an API and reads a sender, to a recipient,
// with the account's sender user@account.example.
var mailAPIs = map[string]string{
	"brevo":      "brevo://key:user@account.example/to@example.org",
	"mailersend": "mailersend://key:user@account.example/to@example.org",
	"mailgun":    "mailgun://user@account.example/key/to@example.org",
	"pingram":    "pingram://pingram_sk_abc123/to@example.org",
	"postmark":   "postmark://key:user@account.example/to@example.org",
	"resend":     "resend://key:user@account.example/to@example.org",
	"sendgrid":   "sendgrid://key:user@account.example/to@example.org",
	"sendpulse":  "sendpulse://user@account.example/id/secret/to@example.org",
	"ses":        "ses://user@account.example/ACCESS-KEY-1/se/cret/us-west-2/to@example.org",
	"smtp2go":    "smtp2go://user@account.example/key/to@example.org",
	"sparkpost":  "sparkpost://user@account.example/key/to@example.org",
}

// namesOfPeople are names as people write them before an address, without quotes and in others.
var namesOfPeople = []string{
	"Grupo OLOM, Inc", "O'Brien", "Alert: prod", "Ops @ Acme", "a@b.example", `The "Ops" Team`,
	"Müller & Söhne, GmbH", "アラート", "Acme; Ops", "Ops (night) [2]", "Disk < 10%",
	"x, y; z: 'q' <old@acme.example>", "#1", "A.B.",
}

// escaped writes a text for the query of a notification URL, where + means itself.
func escaped(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// TestMailSenders checks that each service sends from the address in the URL, with any name before
// it, and refuses a text that only looks like an address, naming the parameter.
func TestMailSenders(t *testing.T) {
	for name, address := range mailAPIs {
		for _, person := range namesOfPeople {
			var sent string
			send := servicetest.API(func(q *http.Request, body string) (int, string) {
				if strings.Contains(q.URL.Path, "access_token") {
					return http.StatusOK, `{"access_token":"t","expires_in":3600}`
				}
				sent += body
				return http.StatusOK, "{}"
			}).Destination(t, address+"?from="+escaped(person+" <valid@acme.example>"))
			_ = send(servicetest.Message(t, "plain")) // some expect another answer
			if text := strings.ReplaceAll(sent, "%40", "@"); !strings.Contains(text, "valid@acme.example") ||
				strings.Contains(text, "account.example") {
				t.Errorf("%s from %s: sent %s", name, person, sent)
			}
			var message struct{ From struct{ Name string } }
			if name == "sendgrid" && (json.Unmarshal([]byte(sent), &message) != nil || message.From.Name != person) {
				t.Errorf("%s: from %q in place of %q", name, message.From.Name, person)
			}
		}
		for _, wrong := range []string{"Ops <valid@>", "<>", "valid@acme@example", "Ops <valid", "a@b.example, c@d.example", "valid@"} {
			if _, err := notifier.Parse(address+"?from="+escaped(wrong), nil); err == nil || !strings.Contains(err.Error(), "from") ||
				strings.Contains(err.Error(), "valid") {
				t.Errorf("%s from %s: %v", name, wrong, err)
			}
		}
	}
}

// TestMailNames checks that parameters with one address keep the name in the URL, also when they
// are printed, and that the error for an invalid one names the parameter.
func TestMailNames(t *testing.T) {
	for _, name := range []string{"brevo", "mailersend", "ses"} {
		for _, person := range namesOfPeople {
			d, err := notifier.Parse(mailAPIs[name]+"?reply="+escaped(person+" <valid@acme.example>"), nil)
			if err != nil {
				t.Errorf("%s: %s: %v", name, person, err)
				continue
			}
			again, err := notifier.Parse(d.URL(), nil)
			if err != nil || again.URL() != d.URL() || !strings.Contains(d.URL(), "valid") {
				t.Errorf("%s: %s: %s, %v", name, person, d.URL(), err)
			}
		}
		if _, err := notifier.Parse(mailAPIs[name]+"?reply=Ops%20<valid@>", nil); err == nil || !strings.Contains(err.Error(), "reply") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNamesInLists checks that an address in a list keeps its name, also one with @ and blanks.
func TestNamesInLists(t *testing.T) {
	for _, name := range []string{"brevo", "mailersend", "mailto", "ses"} {
		for _, param := range []string{"to", "cc", "bcc"} {
			for _, person := range []string{"Ops @ Home", "Jo@Home of Ops", "@ops team", "Alert: prod"} {
				address := cmp.Or(mailAPIs[name], "mailtos://jo:pw@example.com")
				d, err := notifier.Parse(address+"?"+param+"="+escaped(person+" <v@a.example>, x@b.example"), nil)
				if err != nil {
					t.Errorf("%s: %s=%s: %v", name, param, person, err)
					continue
				}
				text, err := url.PathUnescape(d.URL())
				if err != nil || len(d.Warnings()) > 0 ||
					!strings.Contains(strings.ReplaceAll(text, "+", " "), person+`" <v@a.example>`) ||
					!strings.Contains(text, "x@b.example") {
					t.Errorf("%s: %s=%s: %s, %v", name, param, person, text, d.Warnings())
				}
			}
		}
	}
}

// TestPingramTargets checks that a name before an address is no user ID, and that an invalid target
// is reported.
func TestPingramTargets(t *testing.T) {
	var sent []string
	address := "pingram://pingram_sk_abc123/?to=" + escaped("Ann <ann@example.org>, @id1 bob@example.org, !none")
	send := servicetest.API(func(_ *http.Request, body string) (int, string) {
		var message struct{ To json.RawMessage }
		if err := json.Unmarshal([]byte(body), &message); err != nil {
			t.Error(err)
		}
		sent = append(sent, string(message.To))
		return http.StatusOK, "{}"
	}).Destination(t, address)
	if err := send(servicetest.Message(t, "plain")); err != nil {
		t.Fatal(err)
	}
	slices.Sort(sent)
	if got := strings.Join(sent, " "); got != `{"email":"ann@example.org","id":"id1"} {"email":"bob@example.org"}` {
		t.Errorf("sent to %s", got)
	}
	d, err := notifier.Parse(address, nil)
	if err != nil || len(d.Warnings()) != 1 || !strings.Contains(d.Warnings()[0], "1 of the targets") {
		t.Errorf("%v %v", d.Warnings(), err)
	}
}
