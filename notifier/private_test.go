package notifier_test

import (
	"context"
	"errors"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/redact"
)

// privateService is a service that no URL can name.
type privateService struct{ name, secret string }

func (p *privateService) Describe(s *notifier.Schema) {
	s.Name = "Private"
	s.URL("private://{name}")
	s.String(&p.name, "name", p.name, "a name")
	s.String(&p.secret, "secret", p.secret, "a secret").Secret()
}

func (p *privateService) Send(context.Context, *notifier.Client, *notifier.Message) error {
	return errors.New("the answer repeats " + p.secret)
}

// TestNewPrivate checks that a private destination is shown as its program says, that its
// ID identifies it, that its secrets are masked, and that no URL can name it.
func TestNewPrivate(t *testing.T) {
	d := notifier.NewPrivate(&privateService{"n", "s3cret-s3cret"}, "private://shown", "1", nil)
	other := notifier.NewPrivate(&privateService{"n", "s3cret-s3cret"}, "private://shown", "2", nil)
	if d.String() != "private://shown" || d.URL() != d.String() || d.Hash() == other.Hash() || d.Hash() != notifier.PrivateHash("1") {
		t.Errorf("%s %s %s", d, d.URL(), d.Hash())
	}
	policy, err := egress.NewPolicy(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	strict, err := d.WithPolicy(policy)
	if err != nil || strict.Policy() != policy || strict.Hash() != d.Hash() || d.Policy() != nil {
		t.Errorf("%v: %v", strict, err)
	}
	if r := strict.DryRun(t.Context(), "test", &notifier.Message{Body: "b"}); r.Err == nil ||
		r.Err.Error() != "the answer repeats "+redact.Mask {
		t.Errorf("%v", r.Err)
	}
	if _, err := notifier.Parse("private://shown", nil); err == nil {
		t.Error("a URL can name it")
	}
}
