package httpapi_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi/catalogue"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/version"
	"github.com/caddy-notify/caddy-notify/notifier"
)

func TestDetailTemplates(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"discord://{id}/{token}": "{schema}://{id}/{token}",
		"gotify[s]://{host}[:{port}][/{path...}]/{token}": "{schema}://{host}/{token} {schema}://{host}:{port}/{token} " +
			"{schema}://{host}/{path}/{token} {schema}://{host}:{port}/{path}/{token}",
		"json[s]://[{user}[:{password}]@]{host}":    "{schema}://{host} {schema}://{user}@{host} {schema}://{user}:{password}@{host}",
		"smsmanager|smsmgr://{apikey}@{targets...}": "{schema}://{apikey}@{targets}",
		"irc[s]://{host|targets}[/{targets...}]":    "{schema}://{host} {schema}://{host}/{targets}",
		"nctalk[s]://{user}@{host}[:{port}]/{targets...}?x={a}": "{schema}://{user}@{host}/{targets}?x={a} " +
			"{schema}://{user}@{host}:{port}/{targets}?x={a}",
	} {
		if got := strings.Join(catalogue.Templates(url), " "); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

// detailsReply is the part of /details that clients of the Apprise API read.
type detailsReply struct {
	Version string
	Schemas []schemaReply
	Asset   map[string]string
}

type schemaReply struct {
	Name      string `json:"service_name"`
	Setup     string `json:"setup_url"`
	Category  string
	Enabled   *bool
	Protocols []string
	Secure    []string `json:"secure_protocols"`
	Details   struct {
		Templates            []string
		Tokens, Args, Kwargs map[string]fieldReply
	}
}

type fieldReply struct {
	Name, Type, Prefix string
	Values             []string
	Default            any
	MapTo              string `json:"map_to"`
	AliasOf            string `json:"alias_of"`
	Required, Private  bool
}

// TestDetails checks the parts of /details that clients of the Apprise API read: every place of a
// template is a token, every alias has a parameter, and the address of the set-up leads to a
// section.
func TestDetails(t *testing.T) {
	t.Parallel()
	g := newSavedKeys(t, nil, nil, saved.Options{})
	read := func(target string) (out detailsReply) {
		t.Helper()
		if err := json.Unmarshal([]byte(getAccepting(g, target, "*/*").Body), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	page, err := os.ReadFile("../../docs/services.md")
	if err != nil {
		t.Fatal(err)
	}
	d := read("/details")
	if len(d.Schemas) != len(notifier.Services()) || d.Version != version.Current || d.Asset["app_id"] != "Caddy" {
		t.Errorf("%d services, version %s, asset %v", len(d.Schemas), d.Version, d.Asset)
	}
	for _, s := range d.Schemas {
		if s.Name == "Source desk" { // of a test
			continue
		}
		_, anchor, _ := strings.Cut(s.Setup, "#")
		if !strings.Contains(string(page), "](#"+anchor+")") {
			t.Errorf("%s: docs/services.md has no section %s", s.Name, anchor)
		}
		if s.Category != "native" || s.Enabled != nil || len(s.Protocols)+len(s.Secure) == 0 || len(s.Details.Templates) > 64 {
			t.Errorf("%s: %+v", s.Name, s)
		}
		for _, text := range s.Details.Templates {
			for _, m := range catalogue.Place.FindAllStringSubmatch(text, -1) {
				if s.Details.Tokens[m[1]].MapTo == "" {
					t.Errorf("%s: %s has a place that is no token: %s", s.Name, text, m[1])
				}
			}
			if strings.ContainsAny(text, "[]|") {
				t.Errorf("%s: %s", s.Name, text)
			}
		}
		for name, a := range s.Details.Args {
			if a.AliasOf != "" && s.Details.Args[a.AliasOf].MapTo == "" && s.Details.Tokens[a.AliasOf].MapTo == "" &&
				s.Details.Kwargs[a.AliasOf].MapTo == "" {
				t.Errorf("%s: %s is another name of nothing", s.Name, name)
			}
		}
	}
	i := slices.IndexFunc(d.Schemas, func(s schemaReply) bool { return s.Name == "Squadcast" }) // without a scheme
	if s := d.Schemas[i]; !slices.Equal(s.Details.Templates, []string{"{schema}://api.squadcast.com/v2/incidents/api/{token}"}) ||
		!slices.Equal(s.Details.Tokens["schema"].Values, []string{"https"}) || !slices.Equal(s.Protocols, []string{"https"}) {
		t.Errorf("%+v", s)
	}
	i = slices.IndexFunc(d.Schemas, func(s schemaReply) bool { return s.Name == "ntfy" })
	ntfy := d.Schemas[i].Details
	if got := ntfy.Tokens["schema"]; got.Type != "choice:string" || !slices.Equal(got.Values, []string{"ntfy", "ntfys"}) || !got.Required {
		t.Errorf("schema: %+v", got)
	}
	if i := slices.IndexFunc(d.Schemas,
		func(s schemaReply) bool { return s.Name == "JSON" }); d.Schemas[i].Details.Kwargs["headers"].Prefix != "+" {
		t.Errorf("kwargs: %+v", d.Schemas[i].Details.Kwargs)
	}
	if a := ntfy.Args; a["to"].AliasOf != "targets" || a["priority"].Type != "choice:string" || a["priority"].Default != "auto" ||
		a["image"].Default != true || a["retry"].Default != float64(0) || !a["token"].Private {
		t.Errorf("args: %+v", a)
	}

	identity := notifier.DefaultIdentity()
	identity.Icon = "https://example.com/{type}-{size}.png"
	g = gatewaytest.New(t, gatewaytest.Options{Site: site.Options{
		Services: &site.ServiceRule{Allow: []string{"ntfy", "json"}},
		Identity: &identity,
	}, Saved: &saved.Options{}})
	if d := read("/details"); len(d.Schemas) != 2 || d.Asset["image_url_mask"] != "https://example.com/{TYPE}-{XY}.png" {
		t.Errorf("with rules for services: %d, asset %v", len(d.Schemas), d.Asset)
	}
	for _, s := range read("/details?all=yes").Schemas {
		if s.Enabled == nil || *s.Enabled != (s.Name == "ntfy" || s.Name == "JSON") {
			t.Errorf("with ?all=yes, %s is enabled: %v", s.Name, s.Enabled)
		}
	}
	for _, target := range []string{"/details?all=", "/details?all=no", "/details?all"} {
		if n := len(read(target).Schemas); n != 2 {
			t.Errorf("%s lists %d services", target, n)
		}
	}
}
