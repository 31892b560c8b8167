package services

import (
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// TestAddressOfForms checks which forms an address fills in that the service shows, and that
// Recognize finds in it what the form says.
func TestAddressOfForms(t *testing.T) {
	for address, want := range map[string]string{
		"https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ": "slack https://hooks.slack.com/services/…/…/…",
		"https://discord.com/api/webhooks/4174216298/JHMHI8qBe7bk2ZwO5U711o3dV_js":      "discord https://discord.com/api/webhooks/…/…",
		"https://chat.googleapis.com/v1/spaces/AAAA/messages?key=K&token=T": "gchat " +
			"https://chat.googleapis.com/v1/spaces/…/messages?key=…&token=…",
		"https://oapi.dingtalk.com/robot/send?access_token=" + strings.Repeat("0123abcd", 8): "dingtalk " +
			"https://oapi.dingtalk.com/robot/send?access_token=…",
		"https://mattermost.example.com/hooks/abcdefghijklmnopqrstuvwxyz": "mmost https://mattermost.…/hooks/…",
		"https://prod-1.westeurope.logic.azure.com/workflows/0123456789abcdef0123456789abcdef/" +
			"triggers/manual/paths/invoke?api-version=1&sp=x&sv=1.0&" +
			"sig=AbCdEf0123456789GhIjKlMnOpQrStUvWxYz0123456": "workflow https://…/workflows/…/triggers/manual/paths/invoke?sig=…",
		"": "gotify tgram pover ntfy matrix json twilio zoom",
	} {
		schemes, _, _ := strings.Cut(want, " https")
		for scheme := range strings.FieldsSeq(schemes) {
			f := notifier.URLForms(scheme)[0]
			form := strings.TrimPrefix(want, schemes+" ")
			if address == "" {
				form = ""
			}
			if f.Address != form {
				t.Errorf("%s has the address %q, want %q", scheme, f.Address, form)
			}
			if address == "" {
				continue
			}
			found, err := notifier.Recognize(address)
			if err != nil || !found[0].Sure || found[0].Service.Name != f.Service || found[0].Form.Template != f.Template {
				t.Errorf("%s is recognized as %+v, %v", address, found, err)
				continue
			}
			for _, x := range f.Fields {
				if (x.Required || x.InAddress && x.Name != "port") && len(found[0].Values.Texts[x.Name]) == 0 {
					t.Errorf("%s: the address does not have %s", scheme, x.Name)
				}
			}
		}
	}
}
