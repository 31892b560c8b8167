package outbox

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/queued"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// QueueTarget is the destination of a job, with the settings for its delivery.
type QueueTarget struct {
	Target   notifier.Target
	Settings *site.Site
	Limits   *notifier.Limits // nil for no limits
	fallback string           // of the key
	Key      *site.Key
	Rules    *rules.Rules // of the key
	logger   *zap.Logger
	Own      bool // the destination is for this delivery only, and is closed after it
}

// FindQueued returns the destination of a state, from the configuration or a saved key, unless it
// is the URL of a client. If several handlers have a key of the same name, the hash selects the
// destination. A saved key that was moved is found by the name that it had. The error is a
// [*message.Error] of the kind Unavailable if saved keys cannot be read at the moment.
func (a *Configuration) FindQueued(ctx context.Context, state *queued.State) (QueueTarget, error) {
	var unavailable error
	for _, moved := range []bool{false, true} { // first the keys that have the name now
		for _, s := range a.Candidates(state.Site) {
			keys, err := a.keysNamed(ctx, s, state.Key, moved)
			if err != nil && !errors.Is(err, site.ErrNoKey) {
				unavailable = err
			}
			for _, k := range keys {
				if t, own, ok := storedTarget(k, state); ok {
					return QueueTarget{Target: t, Settings: s, Limits: k.Limits, fallback: k.Fallback, logger: k.Log, Key: k, Rules: k.Rules, Own: own},
						nil
				}
			}
		}
	}
	if unavailable != nil {
		return QueueTarget{}, unavailable
	}
	return QueueTarget{}, &goneError{state.Key}
}

// storedTarget returns the target of a key that a state is about. own reports whether it was
// made with the values of the message, so that the caller closes it.
func storedTarget(k *site.Key, state *queued.State) (t notifier.Target, own, ok bool) {
	for _, t := range k.Targets {
		t, own := t.WithStored(state.Values)
		if t.Hash() == state.Hash {
			return t, own, true
		}
		if own {
			t.Close()
		}
	}
	return t, false, false
}

// keysNamed returns the key of a site with a name or, with moved, the saved keys that had it.
// Without a name, it is one with the destinations of the site itself.
func (a *Configuration) keysNamed(ctx context.Context, s *site.Site, name string, moved bool) ([]*site.Key, error) {
	switch {
	case name == "" && moved:
		return nil, nil
	case name == "":
		return []*site.Key{{Targets: s.DefaultTargets, Log: a.Log}}, nil
	case moved:
		return s.Moved(ctx, name)
	}
	k, err := s.Key(ctx, name)
	if err != nil {
		return nil, err
	}
	return []*site.Key{k}, nil
}

// goneError is returned for a delivery whose destination is not in the
// configuration.
type goneError struct{ key string }

func (e *goneError) Error() string {
	if e.key == "" {
		return "the destination is no longer in default_urls of the configuration; add it again, and retry the message"
	}
	return "the key " + e.key + " of the configuration no longer has this destination; add it again, and retry the message"
}

// QueuedTarget returns the destination of a job, under the rules of the site that the message came
// to: the rules when it came in or the rules of now, whichever are stricter.
func (a *Configuration) QueuedTarget(ctx context.Context, text *queued.Text, state *queued.State) (QueueTarget, error) {
	if text.Client {
		then, err := PolicyThen(text, nil)
		if err != nil {
			return QueueTarget{}, err
		}
		return a.clientTarget(text, state, then)
	}
	t, err := a.FindQueued(ctx, &queued.State{Site: text.Site, Key: text.Key, Hash: state.Hash, Values: state.Values})
	if err != nil {
		return QueueTarget{}, err
	}
	then, err := PolicyThen(text, t.Target.Destination)
	if err != nil {
		return QueueTarget{}, err
	}
	err = t.Restrict(a.PolicyOf(text.Site, then, t.Target.Destination))
	return t, err
}

// PolicyThen returns the egress policy that a message was accepted under for d, or nil if
// that is the operator's. d is nil for the URL of a client.
func PolicyThen(t *queued.Text, d *notifier.Destination) (*egress.Policy, error) {
	key := t.Policy
	if d != nil && site.IsDevice(d.String()) {
		key = t.DevicePolicy
	}
	then, err := message.ParsePolicy(key)
	if err == nil && then == nil && (t.Client || t.Untrusted) {
		return message.NewPolicy(nil, nil)
	}
	return then, err
}

// PolicyOf returns the strictest policy for a delivery to d of a message that a site accepted under
// the policy then. It compares that policy, the present policy of the site and the policy of d. It
// returns nil if d was and is configured by the operator.
func (a *Configuration) PolicyOf(siteID string, then *egress.Policy, d *notifier.Destination) *egress.Policy {
	if then == nil && d.Policy() == nil {
		return nil
	}
	_, now, _ := a.siteRules(siteID, then)
	return egress.Strictest(d.Policy(), now, then)
}

// Restrict gives the destination a policy that is as strict as its own or stricter.
func (t *QueueTarget) Restrict(policy *egress.Policy) error {
	if policy.Key() == t.Target.Policy().Key() {
		return nil
	}
	d, err := t.Target.WithPolicy(policy)
	if err == nil {
		if t.Own {
			t.Target.Close()
		}
		t.Target.Destination, t.Own = d, true
	}
	return err
}

// clientTarget returns the destination of a client's URL.
func (a *Configuration) clientTarget(text *queued.Text, state *queued.State, then *egress.Policy) (QueueTarget, error) {
	settings, now, services := a.siteRules(text.Site, then)
	d, err := a.Shared.Sender.ParseOnce(state.URL, egress.Strictest(now, then))
	if err != nil {
		return QueueTarget{}, err
	}
	if err := services.Check(d); err != nil {
		d.Close()
		return QueueTarget{}, err
	}
	return QueueTarget{Target: notifier.Target{Destination: d}, Settings: settings, Limits: settings.Limits.Client, logger: a.Log, Own: true},
		nil
}

// siteRules returns the settings, the egress policy and the restrictions of
// services that hold now for messages of clients to a site. then is the policy
// under which the message was accepted: if a site has several handlers, it came
// to one that had this policy. If none has it, or the site does not exist any
// more, the strictest rules of all of them hold.
func (a *Configuration) siteRules(siteID string, then *egress.Policy) (*site.Site, *egress.Policy, site.ServiceRules) {
	handlers, gone := a.SitesWithID(siteID), false
	if handlers == nil {
		handlers, gone = a.Sites, true
	}
	if len(handlers) == 0 {
		handlers = []*site.Site{a.Global}
	}
	if i := slices.IndexFunc(handlers, func(s *site.Site) bool { return s.Limits.Egress.Key() == then.Key() }); i >= 0 && !gone {
		handlers = handlers[i : i+1]
	}
	var policies []*egress.Policy
	var services site.ServiceRules
	for _, s := range handlers {
		policies, services = append(policies, s.Limits.Egress), append(services, s.Services)
	}
	settings := handlers[0]
	if len(handlers) > 1 {
		settings = a.Global
	}
	return settings, egress.Strictest(policies...), services
}
