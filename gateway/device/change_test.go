package device

import (
	"errors"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/webpush"
)

// checkTag refuses one tag, as a key does.
func checkTag(tag string) error {
	if tag == "all" {
		return errors.New("all stands for every URL")
	}
	return nil
}

func TestCheckName(t *testing.T) {
	for name, want := range map[string]string{
		"Jo's phone":                   "",
		" Jo ":                         "",
		strings.Repeat("ü", maxName):   "",
		strings.Repeat("x", maxName+1): "1 to 64 characters",
		"":                             "1 to 64 characters",
		" \t":                          "1 to 64 characters",
		"a\xff":                        "1 to 64 characters",
		"a\nb":                         "not shown",
		"a\u202eb":                     "not shown",
	} {
		if err := CheckName(name); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

func TestCheckTags(t *testing.T) {
	many := strings.Split(strings.Repeat("a", maxTags), "")
	for _, tt := range []struct {
		tags         []string
		own, granted string
	}{
		{nil, "", ""},
		{many, "", ""},
		{append(many, "a"), "there are 21", "there are 21"},
		{[]string{"ops", strings.Repeat("a", maxTag)}, "", ""},
		{[]string{"ops", strings.Repeat("a", maxTag+1)}, "more than 64", "more than 64"},
		{[]string{"ops", "all"}, "tags: all stands for", "tags: all stands for"},
		{[]string{"ops", "Always"}, "always is for invitations", ""},
		{[]string{"1:always"}, "always is for invitations", ""},
		{[]string{"1:oncall"}, "a number is for invitations", ""},
		{[]string{"0:oncall"}, "a number is for invitations", ""},
		{[]string{"00:oncall"}, "a number is for invitations", ""},
	} {
		for granted, want := range map[bool]string{false: tt.own, true: tt.granted} {
			if err := CheckTags(tt.tags, granted, checkTag); want == "" && err != nil || want != "" &&
				(err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%q, granted %t: %v, want %q", tt.tags, granted, err, want)
			}
		}
	}
}

// TestCheckChange checks that each field is checked if it is given.
func TestCheckChange(t *testing.T) {
	short := subscriptionAt(t, "https://push.example.com/x")
	short.Keys.Auth = short.Keys.Auth[:16] // 12 bytes
	long := short
	long.Keys.Auth += "AAAAAAAA" // 18 bytes
	good, bad, tags := subscriptionAt(t, "https://push.example.com/x"), webpush.Subscription{Endpoint: "https://push.example.com/x"},
		[]string{"all"}
	for want, c := range map[string]*Change{
		"name:":                  {Name: new(string)},
		"tags:":                  {Tags: &tags},
		"subscription: the keys": {Subscription: &bad},
		"subscription: the key auth has 12 bytes": {Subscription: &short},
		"subscription: the key auth has 18 bytes": {Subscription: &long},
		"subscription: the endpoint is":           {Subscription: &good},
	} {
		if err := c.Check(nil, checkTag); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	name := "  Jo "
	c := &Change{Name: &name, Tags: &[]string{"ops"}, Subscription: &good}
	if err := c.Check([]string{"example.com"}, checkTag); err != nil || *c.Name != "Jo" {
		t.Errorf("%v, the name is %q", err, *c.Name)
	}
	if err := new(Change).Check(nil, checkTag); err != nil {
		t.Error(err)
	}
}
