package services

import (
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// serviceOf returns the service with the scheme of a URL or, for an address, the service that gives
// it out; nil if there is none. The URL may be invalid.
func serviceOf(url string) *notifier.ServiceInfo {
	scheme, _, _ := strings.Cut(url, ":")
	if scheme != "https" {
		return notifier.FindService(scheme)
	}
	d, err := notifier.Parse(url, nil)
	if err != nil {
		return nil
	}
	return notifier.FindService(d.Service())
}

// TestAddresses checks services without a scheme: their URLs are the addresses that they give out.
// These are printed unchanged, found in a list and built by a form, and have no other scheme.
func TestAddresses(t *testing.T) {
	tried := 0
	for _, s := range notifier.Services() {
		address, ok := strings.CutPrefix(s.URLs[0], "https://")
		if !ok {
			continue
		}
		tried++
		host, _, _ := strings.Cut(address, "/")
		example := s.Examples[0]
		d, err := notifier.Parse(example, nil)
		if err != nil || d.URL() != example || d.Service() != s.Name {
			t.Errorf("%s: %s is %v, %v", s.Name, example, d, err)
			continue
		}
		if !slices.Equal(s.Schemes, []string{host}) || notifier.FindService(host) == nil || !slices.Equal(d.Schemes(), s.Schemes) {
			t.Errorf("%s has the schemes %q", s.Name, s.Schemes)
		}
		form, values := d.Form()
		if built, problems := form.Build(values); built != example || len(problems) > 0 {
			t.Errorf("%s: the form builds %s, %v", s.Name, built, problems)
		}
		if found, err := notifier.Recognize(example); err != nil || len(found) != 1 || !found[0].Sure || found[0].Service.Name != s.Name {
			t.Errorf("%s: %s is recognized as %v, %v", s.Name, example, found, err)
		}
		for _, url := range []string{
			host + "://" + address, strings.Replace(example, "https", host, 1),
			strings.Replace(example, "https", "http", 1),
		} {
			if d, err := notifier.Parse(url, nil); err == nil {
				t.Errorf("%s is a URL of %s", url, d.Service())
			} else if strings.Contains(notifier.WithSuggestion(url, err).Error(), "you may mean "+host) {
				t.Errorf("%s: %v", url, notifier.WithSuggestion(url, err))
			}
		}
	}
	if tried != 3 {
		t.Errorf("%d services without a scheme", tried)
	}
}
