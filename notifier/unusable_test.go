package notifier_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	_ "github.com/caddy-notify/caddy-notify/notifier/services"
)

// A URL that cannot be used fails for good with the reason, does not hold up
// others, and shows no secret.
func TestUnusable(t *testing.T) {
	s := notifier.NewSender(egress.NewPool("test"), 0)
	defer s.Close()
	policy := new(egress.Policy)
	for url, shown := range map[string][2]string{
		"json://user:s3cret@host.example/x": {"JSON", "json://user:xxxxx@host.example/x"},
		"gotify://s3cret":                   {"Gotify", "gotify://"},
		"nonsense://s3cret/s3cret":          {"Unknown", "an unknown URL"},
		"s3cret":                            {"Unknown", "an unknown URL"},
	} {
		d := notifier.Unusable(url, policy, errors.New("the reason"))
		if d.URL() != url || d.Policy() != policy {
			t.Errorf("%s: the URL is %q, the policy %q", url, d.URL(), d.Policy().Key())
		}
		if same, err := notifier.Parse(url, policy); err == nil && same.Hash() != d.Hash() {
			t.Errorf("%s: it has the hash %s, want %s", url, d.Hash(), same.Hash())
		}
		stricter, err := d.WithPolicy(new(egress.Policy))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []*notifier.Destination{d, stricter} {
			report := s.Send(context.Background(), &notifier.Message{Title: "t", Body: strings.Repeat("b", 5000)},
				[]notifier.Target{{Destination: d, Tags: []string{"ops"}}}, notifier.Options{})
			r := report.Results[0]
			if r.Service != shown[0] || r.Destination != shown[1] || r.Status != notifier.Failed ||
				r.Err == nil || r.Err.Error() != "the reason" || r.Temporary || r.Attempts != 0 {
				t.Errorf("%s: %+v", url, r)
			}
			for _, record := range report.Records {
				if strings.Contains(record.Text, "s3cret") {
					t.Errorf("%s: %s", url, record.Text)
				}
			}
		}
	}
}
