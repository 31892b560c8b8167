package services

import (
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// kwargs has Apprise's names of the parameters whose names in a URL begin with a prefix,
// by a scheme of the service: the names that its /details has. Programs that make forms
// of /details know them.
var kwargs = map[string]string{
	"apprise":   "+headers",
	"deltachat": "+headers",
	"discord":   ":tokens",
	"enigma2":   "+headers",
	"fcm":       "+data_kwargs",
	"form":      "+headers -params :payload",
	"goalert":   "+meta",
	"guilded":   ":tokens",
	"ifttt":     "+add_tokens -del_tokens",
	"jira":      "+details :mapping",
	"json":      "+headers -params :payload",
	"mailgun":   "+headers :tokens",
	"mailto":    "+headers",
	"msg91":     ":template_mapping",
	"ncloud":    "+headers",
	"nctalk":    "+headers",
	"notica":    "+headers",
	"onesignal": ":custom +postback",
	"opsgenie":  "+details :mapping",
	"pagerduty": "+details",
	"pagertree": "+headers -meta_extras :payload_extras",
	"pinglet":   ":badges +data",
	"pingram":   ":tokens",
	"sendgrid":  "+template_data",
	"sendpulse": "+template_data",
	"slack":     ":tokens",
	"smtp2go":   "+headers",
	"sparkpost": "+headers :tokens",
	"splunk":    ":mapping",
	"synology":  "+headers",
	"tgram":     ":tokens",
	"whatsapp":  ":template_mapping",
	"workflow":  ":tokens",
	"xml":       "+headers :payload", // Apprise has -params, too, and sends none of them
}

// TestKwargs compares the names of parameters with a prefix with Apprise's.
func TestKwargs(t *testing.T) {
	found := map[string]bool{}
	for _, s := range notifier.Services() {
		var got []string
		for _, p := range s.Params {
			if p.Kind == notifier.KindMap {
				got = append(got, p.Prefix+p.Name)
			}
		}
		var want []string
		for _, scheme := range s.Schemes {
			if kwargs[scheme] != "" {
				found[scheme] = true
				want = append(want, strings.Fields(kwargs[scheme])...)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, Apprise has %q", s.Name, got, want)
		}
	}
	for scheme := range kwargs {
		if !found[scheme] {
			t.Errorf("no service has the scheme %s", scheme)
		}
	}
}

// TestKwargsAreNoKeys checks that the name of such a parameter, which a URL never has, is
// an unknown parameter rather than an entry without its first letter.
func TestKwargsAreNoKeys(t *testing.T) {
	for _, url := range []string{"json://example.com?payload=x", "json://example.com?headers=x", "fcm://project/tok3n?data_kwargs=x"} {
		d, err := notifier.Parse(url, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if warnings := strings.Join(d.Warnings(), "; "); !strings.Contains(warnings, "is unknown and has no effect") ||
			strings.Contains(d.URL(), "=x") {
			t.Errorf("%s is %s: %s", url, d.URL(), warnings)
		}
	}
}
